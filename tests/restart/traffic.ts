import { Agent, request } from "node:http";
import { Client, type ClientDuplexStream, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { createClient } from "@redis/client";
import {
  CheckBatchRequest,
  type CheckBatchResponse,
  CheckRequest,
  grpcService,
  RateLimiterDefinition,
} from "@sluice/protocol";
import type { Sluice } from "./start-sluice.ts";

/** Sends checks over one protocol, to the servers that it is given. */
export interface Caller {
  readonly name: string;
  /**
   * One check, or a batch of them. Rejects if it was not decided; resolves with how many were allowed. Never repeats.
   */
  call(): Promise<number>;
  /** The servers to use from now on. Waits for calls in flight to others, then closes those connections. */
  use(servers: readonly Sluice[]): void;
  close(): Promise<void>;
}

const dimensions = (subject: string): Record<string, string> => ({ user: subject });

/**
 * Keeps its connections open. A server that is about to stop says `connection: close` with an answer, and Node's agent does
 * not use that connection again.
 */
export function httpCaller(subject: string): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const body = JSON.stringify({ dimensions: dimensions(subject) });
  const next = takeTurns<Sluice>();
  return {
    name: "HTTP",
    call: () =>
      new Promise((resolve, reject) => {
        const headers = { "content-type": "application/json", "content-length": body.length };
        const asked = request(`${next.turn().http}/v1/check`, { agent, method: "POST", headers }, (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => {
            text += chunk;
          });
          response.once("error", reject);
          response.once("end", () => {
            const { allowed, degraded } = JSON.parse(text) as { allowed?: boolean; degraded?: string };
            if (response.statusCode === 200 && allowed === true && degraded === undefined) resolve(1);
            else reject(new Error(`${response.statusCode} ${text}`));
          });
        });
        asked.once("error", reject);
        asked.end(body);
      }),
    use: next.use,
    async close(): Promise<void> {
      agent.destroy();
    },
  };
}

const methods = grpcService(RateLimiterDefinition);
const channelOptions = {
  "grpc.use_local_subchannel_pool": 1,
  "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
};

function channelTo(servers: readonly Sluice[]): Client {
  const addresses = servers.map(({ grpc }) => grpc).join(",");
  return new Client(`ipv4:${addresses}`, credentials.createInsecure(), channelOptions);
}

/** Leaves everything to the channel: it handles the GOAWAY, and sends what the server did not process to another. */
export function grpcCaller(subject: string): Caller {
  const asked = CheckRequest.fromPartial({ dimensions: dimensions(subject) });
  const channels: Client[] = [];
  return {
    name: "gRPC",
    call: () =>
      new Promise((resolve, reject) => {
        const { path, requestSerialize, responseDeserialize } = methods.check;
        const deadline = Date.now() + 60_000;
        channels
          .at(-1)!
          .makeUnaryRequest(
            path,
            requestSerialize,
            responseDeserialize,
            asked,
            new Metadata(),
            { deadline },
            (error: ServiceError | null, answer) => {
              if (error !== null) reject(error);
              else if (answer?.allowed === true && answer.degraded === "") resolve(1);
              else reject(new Error(JSON.stringify(answer)));
            },
          );
      }),
    use(servers): void {
      channels.push(channelTo(servers));
    },
    async close(): Promise<void> {
      for (const channel of channels) channel.close();
    },
  };
}

const batchSize = 8;

/**
 * Batches over streams. A server that is about to stop ends a stream after it has answered what it read; batches that it left
 * unanswered on a stream that ended well were not decided, and are sent over the next one.
 */
export function streamCaller(subject: string): Caller & { readonly resent: () => number } {
  const checks = Array.from({ length: batchSize }, () => CheckRequest.fromPartial({ dimensions: dimensions(subject) }));
  type Stream = ClientDuplexStream<CheckBatchRequest, CheckBatchResponse>;
  interface Waiting {
    readonly resolve: (allowed: number) => void;
    readonly reject: (error: Error) => void;
  }
  const channels: Client[] = [];
  let stream: Stream | undefined;
  let sequence = 0;
  let resent = 0;

  function open(): Stream {
    const { path, requestSerialize, responseDeserialize } = methods.checkStream;
    const opened: Stream = channels.at(-1)!.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
    const waiting = new Map<number, Waiting>();
    let failed: Error | undefined;
    opened.on("data", ({ sequence: answered, results }: CheckBatchResponse) => {
      const batch = waiting.get(answered);
      waiting.delete(answered);
      const allowed = results.filter(({ decision }) => decision?.allowed === true && decision.degraded === "").length;
      if (allowed === batchSize) batch?.resolve(allowed);
      else batch?.reject(new Error(JSON.stringify(results)));
    });
    opened.on("error", (error: Error) => {
      failed = error;
    });
    // After the last answer, and after an error.
    opened.on("status", ({ code, details }: { code: number; details: string }) => {
      if (stream === opened) stream = undefined;
      const over = failed ?? (code === 0 ? undefined : new Error(`${code} ${details}`));
      const left = [...waiting.values()];
      waiting.clear();
      for (const batch of left) {
        if (over !== undefined) {
          batch.reject(over);
          continue;
        }
        resent += 1;
        send(batch);
      }
    });
    Object.assign(opened, { waiting });
    return opened;
  }

  function send(batch: Waiting): void {
    stream ??= open();
    sequence += 1;
    (stream as Stream & { waiting: Map<number, Waiting> }).waiting.set(sequence, batch);
    stream.write(CheckBatchRequest.fromPartial({ sequence, checks }));
  }

  return {
    name: "gRPC streams",
    call: () => new Promise((resolve, reject) => send({ resolve, reject })),
    use(servers): void {
      channels.push(channelTo(servers));
      // Its batches are still answered.
      stream?.end();
      stream = undefined;
    },
    async close(): Promise<void> {
      stream?.cancel();
      for (const channel of channels) channel.close();
    },
    resent: () => resent,
  };
}

function connectResp({ respPort }: Sluice) {
  const socket = { host: "127.0.0.1", port: respPort, reconnectStrategy: false } as const;
  return createClient({ RESP: 2, socket, disableOfflineQueue: true }).on("error", () => {});
}

/** Redis' protocol cannot redirect: a client leaves a server that is not ready, or loses what it sends last. */
export function respCaller(subject: string): Caller {
  const open = new Map<Sluice, Promise<ReturnType<typeof connectResp>>>();
  const next = takeTurns<Sluice>();

  async function connect(server: Sluice): Promise<ReturnType<typeof connectResp>> {
    const client = connectResp(server);
    await client.connect();
    return client;
  }

  function connectionTo(server: Sluice): Promise<ReturnType<typeof connectResp>> {
    const connection = open.get(server) ?? connect(server);
    open.set(server, connection);
    return connection;
  }

  return {
    name: "RESP",
    async call(): Promise<number> {
      const client = await connectionTo(next.turn());
      const answer = (await client.sendCommand(["SLUICE.CHECK", `user=${subject}`])) as unknown[];
      // Whether it is allowed comes first.
      if (Number(answer[0]) !== 1) throw new Error(JSON.stringify(answer));
      return 1;
    },
    use(servers): void {
      next.use(servers);
      for (const [server, connection] of open) {
        if (servers.includes(server)) continue;
        open.delete(server);
        // Waits for calls in flight, and reports their failures.
        void connection.then((client) => client.close()).catch(() => {});
      }
    },
    async close(): Promise<void> {
      for (const connection of open.values()) {
        await connection.then(
          (client) => client.isOpen && client.destroy(),
          () => {},
        );
      }
    },
  };
}

interface Turns<T> {
  turn(): T;
  use(those: readonly T[]): void;
}

function takeTurns<T>(): Turns<T> {
  let all: readonly T[] = [];
  let count = 0;
  return {
    turn: () => all[count++ % all.length]!,
    use(those): void {
      all = those;
    },
  };
}

/** The outcome of the calls so far. */
export interface Tally {
  /** Checks that were allowed, and so charged. */
  allowed: number;
  readonly failures: string[];
}

export interface Traffic {
  readonly tally: Tally;
  stop(): Promise<void>;
}

/** Sequential calls, this many at a time, until it is stopped. */
export function startTraffic(caller: Caller, atATime: number): Traffic {
  const tally: Tally = { allowed: 0, failures: [] };
  let on = true;
  async function flow(): Promise<void> {
    while (on) {
      try {
        const allowed = await caller.call();
        tally.allowed += allowed;
      } catch (error) {
        tally.failures.push(String(error));
        // Avoids a tight loop of immediate failures.
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  }
  const flows = Array.from({ length: atATime }, flow);
  return {
    tally,
    async stop(): Promise<void> {
      on = false;
      await Promise.all(flows);
    },
  };
}
