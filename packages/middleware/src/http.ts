import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { createGate, type Gate, type RequestReader, type Verdict } from "./gate.ts";
import type { Limits } from "./limits.ts";
import { admitNodeRequest } from "./node/admit-node-request.ts";
import type { RateLimitOptions } from "./rate-limit-options.ts";

export { findTicket } from "./attach-ticket.ts";
export type { Limits } from "./limits.ts";
export type { RateLimitOptions, Sent } from "./rate-limit-options.ts";
export type { Ticket } from "./ticket.ts";

/** A request of `node:http`, or of the compatibility API of `node:http2`. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;

/** Whether the request may go on. If not, it has been answered. */
export type Admit<Request extends NodeRequest = IncomingMessage> = (
  request: Request,
  response: ServerResponse | Http2ServerResponse,
) => boolean | Promise<boolean>;

/**
 * For plain `node:http`, and frameworks that expose its requests:
 * `createServer(async (request, response) => { if (await admit(request, response)) … })`. Synchronous if counters are in
 * this process. For `node:http2`: `rateLimit<Http2ServerRequest>(…)`.
 */
export function rateLimit<Request extends NodeRequest = IncomingMessage>(
  limits: Limits,
  options: RateLimitOptions<Request> = {},
): Admit<Request> {
  const gate: Gate<Request> = createGate(nodeReader, limits, options);
  return (request, response) => {
    // An HTTP/2 response has all the methods that are called here.
    const admit = (verdict: Verdict) => admitNodeRequest(gate, request, response as ServerResponse, verdict);
    const verdict = gate.decide(request);
    return verdict instanceof Promise ? verdict.then(admit) : admit(verdict);
  };
}

const nodeReader: RequestReader<NodeRequest> = {
  method: (request) => request.method,
  path: (request) => request.url,
  route: () => undefined,
  peer: (request) => request.socket.remoteAddress,
  ip: (request) => request.socket.remoteAddress,
  header: (request, name) => request.headers[name],
};
