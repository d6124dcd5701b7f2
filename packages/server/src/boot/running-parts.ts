import type { Service } from "../data-plane/service/service.ts";
import type { Metrics } from "../observe/telemetry/metrics.ts";
import type { Addresses, Transports } from "./create-transports.ts";

/**
 * What parts read from parts that are opened after them: metrics count connections, and doors count rejected ones in
 * metrics. Undefined until it is open.
 */
export interface RunningParts {
  /** False as soon as the server is asked to stop. */
  accepting: boolean;
  metrics: Metrics | undefined;
  service: Service | undefined;
  transports: Transports | undefined;
  addresses: Addresses | undefined;
}

export const noConnections: Transports["connections"] = { http: 0, grpc: 0, resp: 0, admin: 0 };
export const noAddresses: Addresses = { http: [], grpc: [], resp: [], admin: [] };
