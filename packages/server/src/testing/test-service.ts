import type { Limiter } from "sluice";
import { type Access, openAccess } from "../data-plane/access/access.ts";
import { type Role, rolePermissions } from "../data-plane/access/roles.ts";
import { createDecide } from "../data-plane/service/create-decide.ts";
import { createService, type ServiceOptions } from "../data-plane/service/create-service.ts";
import type { Service } from "../data-plane/service/service.ts";
import { readServerStatus } from "../data-plane/status/server-status.ts";
import { createDoor, type DoorOptions } from "../data-plane/transports/door.ts";
import type { Transport } from "../data-plane/transports/transport.ts";
import type { Logger } from "../observe/telemetry/logger.ts";
import { createMetrics } from "../observe/telemetry/metrics.ts";
import type { Protocol } from "../protocol.ts";

export const silentLog: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** Every caller has this role, with or without a token. */
export function accessWithRole(role: Role): Access {
  return { identify: () => ({ name: role, may: new Set(rolePermissions[role]), role }) };
}

/** A service around a limiter, quiet and open by default. */
export function createTestService(limiter: Limiter, options: Partial<Omit<ServiceOptions, "limiter">> = {}): Service {
  const metrics = options.metrics ?? createMetrics({ version: "0", sources: { generation: () => 1 } });
  metrics.usePolicies(limiter.snapshot.policySet);
  return createService({
    limiter,
    decide: createDecide({ limiter, metrics }),
    access: openAccess,
    metrics,
    log: silentLog,
    accepting: () => true,
    policyStatus: () => ({ state: "current", problems: [] }),
    countersStatus: () => undefined,
    hotKeys: async () => [],
    status: () =>
      readServerStatus({
        version: "0",
        startedAtMs: 0,
        accepting: () => true,
        snapshot: () => limiter.snapshot,
        policyPath: undefined,
        policyStatus: () => ({ state: "current", problems: [] }),
        policyOrigin: () => ({ source: "none", digest: "", takenUpMs: 0 }),
        counters: { where: "memory", stats: {}, status: () => undefined },
        pending: () => 0,
        maxPending: 0,
        refused: metrics.refused,
        addresses: () => ({ http: [], grpc: [], resp: [], admin: [] }),
        connections: () => ({ http: 0, grpc: 0, resp: 0, admin: 0 }),
      }),
    version: "0",
    ...options,
  });
}

/** A transport that listens on a free port of loopback. */
export interface ListeningTransport {
  /** `127.0.0.1:34567` */
  readonly address: string;
  readonly port: number;
  close(withinMs?: number): Promise<number>;
}

export async function listenForTest(
  protocol: Protocol,
  transport: Transport,
  options: Partial<DoorOptions> = {},
): Promise<ListeningTransport> {
  const door = createDoor({
    protocol,
    endpoints: [{ kind: "port", host: "127.0.0.1", port: 0 }],
    transport,
    maxConnections: 100,
    onTurnedAway: () => {},
    ...options,
  });
  const [address = ""] = await door.listen();
  return {
    address,
    port: Number(address.slice(address.lastIndexOf(":") + 1)),
    async close(withinMs = 1_000): Promise<number> {
      await door.close();
      return transport.drain(withinMs);
    },
  };
}
