import { connectServers } from "./connect-servers.ts";
import { GrpcExchange } from "./grpc/grpc-exchange.ts";
import { HttpExchange } from "./http/http-exchange.ts";
import { parseAddresses } from "./parse-addresses.ts";
import type { ConnectOptions, RemoteLimiter } from "./remote-limiter.ts";

export type { AddressState, AddressStats } from "./guarded-address.ts";
export type { LeaseOptions, RemoteLeasesStats } from "./leases/remote-leases.ts";
export type { AddressChange, ConnectOptions, RemoteLimiter, RemoteStats, TlsOptions } from "./remote-limiter.ts";
export type { DecideInstead, LocalLimits, WhenUnavailable } from "./when-unavailable.ts";

/**
 * A limiter that asks servers over gRPC or HTTP: `connect("grpc://10.0.0.5:8081,10.0.0.6:8081")`. Needs `@grpc/grpc-js`; for HTTP
 * alone, import `connect` from `@sluice/client/http`, which needs nothing but Node. Opens no connection before the first check.
 */
export function connect(addresses: string | readonly string[], options: ConnectOptions = {}): RemoteLimiter {
  return connectServers(parseAddresses(addresses, ["grpc", "http"]), options, (address, connectOptions, events) =>
    address.scheme === "grpc"
      ? new GrpcExchange(address, connectOptions, events)
      : new HttpExchange(address, connectOptions, events),
  );
}
