import {
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import {
  type GrpcMethod,
  grpcService,
  type RequestOf,
  type ResponseOf,
  type ServiceDefinition,
} from "@sluice/protocol";

export interface CallOptions {
  readonly token?: string | undefined;
  /** Epoch milliseconds. */
  readonly deadline?: number | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Called with the metadata of a unary answer. */
  readonly onMetadata?: ((metadata: Metadata) => void) | undefined;
}

/** A client of grpc-js over one connection, which never retries a call. */
export interface GrpcTestClient {
  /** Rejects with a `ServiceError`. */
  call<D extends ServiceDefinition, M extends keyof D["methods"] & string>(
    service: D,
    method: M,
    request: RequestOf<D, M>,
    options?: CallOptions,
  ): Promise<ResponseOf<D, M>>;
  /** The error that a call ends with; throws if it succeeds. */
  fail<D extends ServiceDefinition, M extends keyof D["methods"] & string>(
    service: D,
    method: M,
    request: RequestOf<D, M>,
    options?: CallOptions,
  ): Promise<ServiceError>;
  stream<D extends ServiceDefinition, M extends keyof D["methods"] & string>(
    service: D,
    method: M,
    options?: CallOptions,
  ): ClientDuplexStream<RequestOf<D, M>, ResponseOf<D, M>>;
  watch<D extends ServiceDefinition, M extends keyof D["methods"] & string>(
    service: D,
    method: M,
    request: RequestOf<D, M>,
    options?: CallOptions,
  ): ClientReadableStream<ResponseOf<D, M>>;
  readonly client: Client;
  close(): void;
}

/** `ca`: the authority that vouches for the server. Absent: in clear text. */
export function connectForTest(address: string, ca?: Buffer): GrpcTestClient {
  const client = new Client(address, ca === undefined ? credentials.createInsecure() : credentials.createSsl(ca), {
    "grpc.enable_retries": 0,
    // Clients of one process share connections by default.
    "grpc.use_local_subchannel_pool": 1,
  });
  const call: GrpcTestClient["call"] = (service, method, request, { token, deadline, metadata, onMetadata } = {}) =>
    new Promise((resolve, reject) => {
      const { path, requestSerialize, responseDeserialize } = findMethod(service, method);
      const options = deadline === undefined ? {} : { deadline };
      const sent = client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize as (bytes: Buffer) => ResponseOf<typeof service, typeof method>,
        request,
        createMetadata(token, metadata),
        options,
        (error, response) => (error === null ? resolve(response!) : reject(error)),
      );
      if (onMetadata !== undefined) sent.on("metadata", onMetadata);
    });
  return {
    call,
    async fail(service, method, request, options) {
      try {
        await call(service, method, request, options);
      } catch (error) {
        return error as ServiceError;
      }
      throw new Error(`${method} succeeded, and should have failed`);
    },
    stream(service, method, { token, deadline } = {}) {
      const { path, requestSerialize, responseDeserialize } = findMethod(service, method);
      const options = deadline === undefined ? {} : { deadline };
      return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, createMetadata(token), options);
    },
    watch(service, method, request, { token, deadline } = {}) {
      const { path, requestSerialize, responseDeserialize } = findMethod(service, method);
      const options = deadline === undefined ? {} : { deadline };
      return client.makeServerStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        createMetadata(token),
        options,
      );
    },
    client,
    close: () => client.close(),
  };
}

function findMethod<D extends ServiceDefinition, M extends keyof D["methods"]>(
  service: D,
  method: M,
): GrpcMethod<RequestOf<D, M>, ResponseOf<D, M>> {
  return grpcService(service)[method];
}

function createMetadata(token: string | undefined, more: Readonly<Record<string, string>> = {}): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(more)) metadata.set(name, value);
  if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
  return metadata;
}
