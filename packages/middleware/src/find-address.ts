import { createCidrSet, findClientIp, SluiceError, type TrustedProxies } from "sluice";
import type { RateLimitOptions } from "./rate-limit-options.ts";

/** How an adapter reads where its requests come from. */
export interface AddressReader<Request> {
  /** The address at the other end of the connection. */
  peer(request: Request): string | undefined;
  /** The client's address as the framework found it by its own settings; where it has none, `peer` again. */
  ip(request: Request): string | undefined;
  header(request: Request, name: string): string | readonly string[] | undefined;
}

type AddressOptions<Request> = Pick<RateLimitOptions<Request>, "ip" | "proxyHeader" | "trustedProxies">;

/**
 * Finds the client's address: as the app does it itself, behind the proxies it has named, or as the framework does. Refuses
 * proxies that are none here, and not with the first request.
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
    const said = proxyHeader === "forwarded" ? { forwarded: header } : { forwardedFor: header };
    return findClientIp({ peer, trustedProxies, ...said });
  };
}

/** What is no text, such as a promise of one, is the app's mistake: as no address it would be the same for everybody. */
function checkAddress(address: unknown): string | undefined {
  if (typeof address === "string") return address;
  if (address === undefined || address === null) return undefined;
  throw new TypeError(`ip must answer with a text, at once, and not with ${typeof address}`);
}

/** `createCidrSet` names what it cannot read. */
function trustedProxiesFrom(proxies: readonly string[] | number | undefined): TrustedProxies | undefined {
  if (proxies === undefined) return undefined;
  if (typeof proxies !== "number") return createCidrSet(proxies);
  if (Number.isInteger(proxies) && proxies >= 0 && proxies <= 64) return { hops: proxies };
  const message = `must be addresses of proxies, or their number from 0 to 64, not ${proxies}`;
  throw new SluiceError("invalid_policies", `trustedProxies ${message}`, [{ path: ["trustedProxies"], message }]);
}
