import { once } from "node:events";
import { readFileSync } from "node:fs";
import {
  type CallOptions,
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  compressionAlgorithms,
  credentials,
  Metadata,
  type StatusObject,
} from "@grpc/grpc-js";
import manifest from "@grpc/grpc-js/package.json" with { type: "json" };
import type { Call, ClientAdapter, ContractClient, Fields, Outcome, Target } from "../contract/contract-client.ts";
import { unable } from "../contract/contract-client.ts";

export const grpcJsAdapter: ClientAdapter = {
  name: "grpc-js",
  lacks: {
    "raw requests": "the library writes headers and frames",
    frames: "the library writes frames",
  },
  version: async () => manifest.version,
  open: async () => new GrpcJsClient(),
};

class GrpcJsClient implements ContractClient {
  readonly #channels = new Map<string, Client>();

  async call(target: Target, call: Call): Promise<Outcome> {
    const client = this.#channel(target, call.gzip === true);
    const { method, requests, kind = "unary" } = call;
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(call.metadata ?? {})) metadata.set(name, value);
    const options: CallOptions = call.timeoutMs === undefined ? {} : { deadline: Date.now() + call.timeoutMs };
    if (kind === "bidirectional") {
      const stream = client.makeBidiStreamRequest(method, asItIs, asItIs, metadata, options);
      void sendAll(stream, call);
      return collect(stream, call);
    }
    const request = Buffer.from(requests[0]!);
    // A unary answer is a stream of one, and shows its headers and trailers in the same way.
    return collect(client.makeServerStreamRequest(method, asItIs, asItIs, request, metadata, options), call);
  }

  callTogether(target: Target, call: Call, times: number): Promise<readonly Outcome[]> {
    return Promise.all(Array.from({ length: times }, () => this.call(target, call)));
  }

  send(): Promise<never> {
    return unable("grpc-js", "raw requests");
  }

  async close(): Promise<void> {
    for (const client of this.#channels.values()) client.close();
  }

  #channel(target: Target, gzip: boolean): Client {
    const key = JSON.stringify([target, gzip]);
    const known = this.#channels.get(key);
    if (known !== undefined) return known;
    const options: ChannelOptions = {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_http_proxy": 0,
      ...(gzip && { "grpc.default_compression_algorithm": compressionAlgorithms.gzip }),
    };
    const client = new Client(target.address, credentialsFor(target), options);
    this.#channels.set(key, client);
    return client;
  }
}

function credentialsFor({ tls }: Target): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure();
  const read = (file: string | undefined): Buffer | null => (file === undefined ? null : readFileSync(file));
  return credentials.createSsl(read(tls.ca), read(tls.key), read(tls.cert));
}

function asItIs(bytes: Buffer): Buffer {
  return bytes;
}

async function sendAll(stream: ClientDuplexStream<Buffer, Buffer>, { requests, holdOpen }: Call): Promise<void> {
  for (const request of requests) {
    if (stream.destroyed) return;
    if (stream.write(Buffer.from(request))) continue;
    const over = new AbortController();
    const waits = ["drain", "close"].map((event) =>
      once(stream, event, { signal: over.signal }).catch(() => undefined),
    );
    await Promise.race(waits);
    over.abort();
  }
  if (holdOpen !== true) stream.end();
}

type Answers = ClientReadableStream<Buffer> | ClientDuplexStream<Buffer, Buffer>;

function collect(stream: Answers, { cancelAfter }: Call): Promise<Outcome> {
  return new Promise((resolve) => {
    const responses: Buffer[] = [];
    let headers: Fields = {};
    stream.on("metadata", (metadata: Metadata) => {
      headers = fieldsFrom(metadata);
    });
    stream.on("data", (response: Buffer) => {
      responses.push(response);
      if (responses.length === cancelAfter) stream.cancel();
    });
    stream.on("error", () => {});
    stream.on("status", ({ code, details, metadata }: StatusObject) =>
      resolve({ code, message: details, responses, headers, trailers: fieldsFrom(metadata) }),
    );
  });
}

function fieldsFrom(metadata: Metadata): Fields {
  return Object.fromEntries(
    Object.keys(metadata.getMap()).map((name) => {
      const [value] = metadata.get(name);
      return [name, Buffer.isBuffer(value) ? value.toString("base64") : String(value)];
    }),
  );
}
