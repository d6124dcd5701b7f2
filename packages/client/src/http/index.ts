import { connectServers } from "../connect-servers.ts";
import { parseAddresses } from "../parse-addresses.ts";
import type { ConnectOptions, RemoteLimiter } from "../remote-limiter.ts";
import { HttpExchange } from "./http-exchange.ts";

export type { AddressState, AddressStats } from "../guarded-address.ts";
export type { LeaseOptions, RemoteLeasesStats } from "../leases/remote-leases.ts";
export type { AddressChange, ConnectOptions, RemoteLimiter, RemoteStats, TlsOptions } from "../remote-limiter.ts";
export type { DecideInstead, LocalLimits, WhenUnavailable } from "../when-unavailable.ts";

/**
 * A limiter that asks servers over HTTP: `connect("http://10.0.0.5:8080,10.0.0.6:8080")`. Needs nothing but Node. Opens no
 * connection before the first check.
 */
export function connect(addresses: string | readonly string[], options: ConnectOptions = {}): RemoteLimiter {
  return connectServers(
    parseAddresses(addresses, ["http"]),
    options,
    (address, connectOptions, events) => new HttpExchange(address, connectOptions, events),
  );
}
