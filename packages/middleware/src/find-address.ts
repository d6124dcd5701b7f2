import { createCidrSet, findClientIp, SluiceError, type TrustedProxies } from "sluice";
import type { RateLimitOptions } from "./rate-limit-options.ts";

/** How an adapter reads the origin of its requests. */
export interface AddressReader<Request> {
  /** The address at the other end of the connection. */
  peer(request: Request): string | undefined;
  /** The client's address as the framework's own settings find it; if it has no such settings, `peer`. */
  ip(request: Request): string | undefined;
  header(request: Request, name: string): string | readonly string[] | undefined;
}

type AddressOptions<Request> = Pick<RateLimitOptions<Request>, "ip" | "proxyHeader" | "trustedProxies">;

/**
 * Finds the client's address: by the app's own function, behind the proxies it has named, or as the framework does.
 * Refuses invalid proxies here, not at the first request.
 */
export function createAddressFinder<Request>(
  reader: AddressReader<Request>,
  { ip, proxyHeader = "x-forwarded-for", trustedProxies: proxies }: AddressOptions<Request>,
): (request: Request) => string | undefined {
  const trustedProxies = trustedProxiesFrom(proxies);
  if (ip !== undefined) return (request) => checkAddress(ip(request));
  if (trustedProxies === undefined) return (request) => reader.ip(request);
  return (request) => {
    const peer = reader.peer(request);
    const header = reader.header(request, proxyHeader);
    const forwarding = proxyHeader === "forwarded" ? { forwarded: header } : { forwardedFor: header };
    return findClientIp({ peer, trustedProxies, ...forwarding });
  };
}

/** A value that is not a string, such as a promise, is the app's mistake: as an address it would be the same for all clients. */
function checkAddress(address: unknown): string | undefined {
  if (typeof address === "string") return address;
  if (address === undefined || address === null) return undefined;
  throw new TypeError(`ip must return a string synchronously, not ${typeof address}`);
}

/** `createCidrSet` names the addresses it cannot parse. */
function trustedProxiesFrom(proxies: readonly string[] | number | undefined): TrustedProxies | undefined {
  if (proxies === undefined) return undefined;
  if (typeof proxies !== "number") return createCidrSet(proxies);
  if (Number.isInteger(proxies) && proxies >= 0 && proxies <= 64) return { hops: proxies };
  const message = `must be proxy addresses, or the number of proxies from 0 to 64, not ${proxies}`;
  throw new SluiceError("invalid_policies", `trustedProxies ${message}`, [{ path: ["trustedProxies"], message }]);
}
