import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { CheckRequest, RateLimiterDefinition as service } from "@sluice/protocol";
import { type CounterStore, createLimiter, type Limiter, MemoryCounters } from "sluice";
import { createMetrics, type Metrics } from "../../../../../observe/telemetry/metrics.ts";
import { connectForTest, type GrpcTestClient } from "../../../../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../../../../testing/test-service.ts";
import { wholeGrpcServer } from "../../../../../testing/whole-servers.ts";
import { createDecide } from "../../../../service/create-decide.ts";
import type { GrpcServerOptions } from "../../server.ts";
import { RawClient } from "./raw-client.ts";

/** Files in PEM, which `close` removes. */
interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  close(): Promise<void>;
}

/**
 * A real server that raw sockets attack, in clear text or over TLS, and whose neighbours on other connections are asked how they are.
 * It can listen again after it was closed.
 */
export class AttackedServer {
  /** Whether the next one speaks TLS. */
  secure = false;
  /** Checks that were decided. */
  decided = 0;
  metrics!: Metrics;
  /** The server's ends of connections. */
  accepted: Socket[] = [];
  attackers: RawClient[] = [];
  #neighbours: GrpcTestClient[] = [];
  #listening: ListeningTransport | undefined;
  readonly #createCertificates: () => Promise<Certificates>;
  #certificates: Certificates | undefined;
  #ca: Buffer | undefined;

  constructor(createCertificates: () => Promise<Certificates>) {
    this.#createCertificates = createCertificates;
  }

  get port(): number {
    return this.#listening!.port;
  }

  async listen(counters: CounterStore = new MemoryCounters(), options: GrpcServerOptions = {}): Promise<void> {
    const limiter = limiterOn(counters);
    const metrics = createMetrics({ version: "0", sources: { generation: () => 1 } });
    const decide = createDecide({
      limiter,
      metrics,
      observe: (_, { preview }) => {
        this.decided += preview ? 0 : 1;
      },
    });
    this.decided = 0;
    this.metrics = metrics;
    this.accepted = [];
    const transport = wholeGrpcServer(createTestService(limiter, { metrics, decide }), {
      ...options,
      engine: "sluice",
    });
    const accept = (socket: Socket): void => {
      this.accepted.push(socket);
      transport.accept(socket);
    };
    const tls = this.secure ? await this.#createTls() : undefined;
    this.#listening = await listenForTest("grpc", { ...transport, accept }, { tls });
  }

  /** A connection that has said nothing yet. */
  connect(): RawClient {
    const client = new RawClient(this.port, this.secure ? this.#ca : undefined);
    this.attackers.push(client);
    return client;
  }

  /** A connection that has greeted the server. */
  async attack(settings?: Uint8Array): Promise<RawClient> {
    const client = this.connect();
    await client.greet(settings);
    return client;
  }

  /** Fails unless a client on another connection is answered, again and again. */
  async neighbourIsWell(): Promise<void> {
    const neighbour = connectForTest(this.#listening!.address, this.secure ? this.#ca : undefined);
    this.#neighbours.push(neighbour);
    const request = CheckRequest.fromPartial({ dimensions: { user: "ada" }, preview: true });
    for (let i = 0; i < 20; i++) {
      const { allowed } = await neighbour.call(service, "check", request);
      if (!allowed) throw new Error("the neighbour was denied");
    }
  }

  async close(): Promise<void> {
    for (const attacker of this.attackers) attacker.destroy();
    for (const neighbour of this.#neighbours) neighbour.close();
    this.attackers = [];
    this.#neighbours = [];
    this.secure = false;
    await this.#listening?.close();
    this.#listening = undefined;
    await this.#certificates?.close();
    this.#certificates = undefined;
  }

  async #createTls(): Promise<NonNullable<Parameters<typeof listenForTest>[2]>["tls"]> {
    this.#certificates = await this.#createCertificates();
    const { ca, cert, key } = this.#certificates;
    this.#ca = await readFile(ca);
    return {
      options: { cert: await readFile(cert), key: await readFile(key) },
      clientNames: undefined,
      onChange: () => () => {},
      reload: async () => {},
      close() {},
    };
  }
}

function limiterOn(counters: CounterStore): Limiter {
  const limits = [{ by: ["user"], algorithm: "fixed_window", windows: [{ limit: 1_000_000_000, per: "never" }] }];
  return createLimiter({ policies: { policies: [{ id: "calls", limits }], default: "none" }, counters });
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Live bytes, on the heap and beside it; attackers send the same buffers again and again. */
function liveBytes(): number {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** By how much live memory has grown since. */
export function watchMemory(): () => number {
  const before = liveBytes();
  return () => liveBytes() - before;
}
