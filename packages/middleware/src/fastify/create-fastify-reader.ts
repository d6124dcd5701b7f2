import type { FastifyRequest } from "fastify";
import type { RequestReader } from "../gate.ts";
import { warnAboutTrustedProxies } from "../warn-about-trusted-proxies.ts";
import { RecentAddresses } from "./recent-addresses.ts";

export function createFastifyReader(): RequestReader<FastifyRequest> {
  let asked = false;
  const addresses = new RecentAddresses();
  return {
    method: (request) => request.method,
    path: (request) => request.originalUrl,
    route: ({ routeOptions: { url } }) => (url === "*" || url === "/*" ? undefined : url),
    peer: (request) => request.socket.remoteAddress,
    ip: (request) => {
      if (!asked) {
        asked = true;
        if (trustsEveryPeer(request)) warnAboutTrustedProxies("Fastify", "trustProxy");
      }
      return addresses.find(request);
    },
    header: (request, name) => request.headers[name],
  };
}

/**
 * Whether a peer that is not a proxy may say whose request it is. Fastify does not expose its settings, so this probes it
 * with a made-up request between two addresses reserved for documentation.
 */
function trustsEveryPeer(request: FastifyRequest): boolean {
  const headers = { "x-forwarded-for": "192.0.2.1" };
  const socket = { remoteAddress: "198.51.100.1" };
  const probe = Object.create(Object.getPrototypeOf(request) as object, { raw: { value: { headers, socket } } });
  try {
    return (probe as FastifyRequest).ip === "192.0.2.1";
  } catch {
    return false;
  }
}
