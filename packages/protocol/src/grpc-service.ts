import { BinaryWriter } from "@bufbuild/protobuf/wire";

/** Writes and reads one message, as generated code does. */
interface Codec {
  // Method syntax, so that codecs of any message are assignable.
  encode(message: unknown, writer?: BinaryWriter): BinaryWriter;
  decode(bytes: Uint8Array): unknown;
}

/** A service as generated code describes it, such as `RateLimiterDefinition`. */
export interface ServiceDefinition {
  /** `sluice.v1.RateLimiter` */
  readonly fullName: string;
  /** By their names in camel case. */
  readonly methods: Readonly<
    Record<
      string,
      {
        readonly name: string;
        readonly requestType: Codec;
        readonly requestStream: boolean;
        readonly responseType: Codec;
        readonly responseStream: boolean;
      }
    >
  >;
}

export type RequestOf<D extends ServiceDefinition, M extends keyof D["methods"]> = ReturnType<
  D["methods"][M]["requestType"]["decode"]
>;

export type ResponseOf<D extends ServiceDefinition, M extends keyof D["methods"]> = ReturnType<
  D["methods"][M]["responseType"]["decode"]
>;

/** A method in the form that `@grpc/grpc-js` takes, for servers and clients. */
export interface GrpcMethod<Req, Res> {
  /** `/sluice.v1.RateLimiter/Check` */
  readonly path: string;
  readonly originalName: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  requestSerialize(message: Req): Buffer;
  /** Throws if the bytes are not such a message. */
  requestDeserialize(bytes: Uint8Array): Req;
  responseSerialize(message: Res): Buffer;
  responseDeserialize(bytes: Uint8Array): Res;
}

/** Methods by their names in camel case. */
export type GrpcService<D extends ServiceDefinition> = {
  readonly [M in keyof D["methods"]]: GrpcMethod<RequestOf<D, M>, ResponseOf<D, M>>;
};

/** The definition of a service that `makeClientConstructor` and `Server.addService` of `@grpc/grpc-js` take. */
export function grpcService<D extends ServiceDefinition>({ fullName, methods }: D): GrpcService<D> {
  const entries = Object.entries(methods).map(([key, method]): [string, GrpcMethod<unknown, unknown>] => [
    key,
    {
      path: `/${fullName}/${method.name}`,
      originalName: key,
      requestStream: method.requestStream,
      responseStream: method.responseStream,
      requestSerialize: (message) => serialize(method.requestType, message),
      requestDeserialize: (bytes) => method.requestType.decode(bytes),
      responseSerialize: (message) => serialize(method.responseType, message),
      responseDeserialize: (bytes) => method.responseType.decode(bytes),
    },
  ]);
  return Object.fromEntries(entries) as GrpcService<D>;
}

/** Reuses its buffer, so that the next message need not grow one. */
let writer = new BinaryWriter();

function serialize(codec: Codec, message: unknown): Buffer {
  try {
    const bytes = codec.encode(message, writer).finish();
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  } catch (error) {
    // It holds half a message.
    writer = new BinaryWriter();
    throw error;
  }
}
