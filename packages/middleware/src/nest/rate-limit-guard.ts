import { type CanActivate, type ExecutionContext, Inject, Injectable } from "@nestjs/common";
import { attachTicket } from "../attach-ticket.ts";
import type { Gate, Passed, Refused, Verdict } from "../gate.ts";
import { warnOncePerMinute } from "../warn-once-per-minute.ts";
import {
  type ContextKind,
  type Exchange,
  exchangeFromContext,
  findContextKind,
  type NestRequest,
  type NestResponse,
  rawResponse,
} from "./exchange.ts";
import { decodeBody, RateLimitException } from "./rate-limit-exception.ts";
import { RouteGates } from "./route-gates.ts";
import { whenSent } from "./when-sent.ts";

const guarded = Symbol("sluice.guarded");

/**
 * Checks the limits before a handler of HTTP, GraphQL or WebSockets. `RateLimitModule` puts it before all handlers; with
 * `everywhere: false`, `@UseGuards(RateLimitGuard)` puts it before single ones. Used twice on a handler, it counts once.
 */
export class RateLimitGuard implements CanActivate {
  readonly #gates: RouteGates;

  constructor(gates: RouteGates) {
    this.#gates = gates;
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const kind = findContextKind(context);
    if (kind === undefined) {
      const type = JSON.stringify(context.getType<string>());
      warnOncePerMinute(
        "SLUICE_UNKNOWN_CONTEXT",
        `calls of type ${type} are not supported, and pass without being counted`,
      );
      return true;
    }
    if (isGuarded(context)) return true;
    const gate = this.#gates.gateFor(context, kind);
    if (gate === undefined) return true;
    const exchange = exchangeFromContext(context, kind);
    const verdict = gate.decide(exchange.request);
    if (verdict instanceof Promise) return verdict.then((one) => admit(gate, exchange, kind, one));
    return admit(gate, exchange, kind, verdict);
  }
}

Injectable()(RateLimitGuard);
Inject(RouteGates)(RateLimitGuard, undefined, 0);

/** Each call of a handler has one context, which all of its guards share. */
function isGuarded(context: ExecutionContext & { [guarded]?: true }): boolean {
  if (context[guarded]) return true;
  context[guarded] = true;
  return false;
}

function admit(
  gate: Gate<NestRequest>,
  { request, response }: Exchange,
  kind: ContextKind,
  verdict: Verdict,
): boolean | Promise<boolean> {
  if (verdict.kind === "skipped") return true;
  if (response !== undefined) setHeaders(response, verdict);
  if (verdict.kind === "refused") {
    if (kind === "ws") return refuseClient(verdict);
    if (kind === "http") checkAnswer(verdict);
    throw new RateLimitException(verdict);
  }
  const { ticket } = verdict;
  if (ticket === undefined) return true;
  attachTicket(request, ticket);
  if (gate.settles && response !== undefined) {
    whenSent(rawResponse(response), (sent) => void gate.settle(request, ticket, sent));
  }
  return true;
}

/** A refusal by the app that cannot be sent is the app's error. In Nest 10 a request hangs if its filter throws. */
function checkAnswer({ status, headers }: Refused): void {
  if (!(status >= 100 && status <= 999)) throw new RangeError(`refuse must return an HTTP status, not ${status}`);
  // The same check as Node's; importing Node's would load its whole HTTP client.
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(headers["content-type"]!)) {
    throw new TypeError("refuse must return a contentType that is a valid header value");
  }
}

/** Set on Node's response, so that they are sent even if a handler writes to it directly. */
function setHeaders(response: NestResponse, { headers }: Passed | Refused): void {
  const raw = rawResponse(response);
  if (raw.headersSent) return;
  // The filter sets the content type.
  for (const name in headers) if (name !== "content-type") raw.setHeader(name, headers[name]!);
}

/** Throws an error that gateways send to their clients. */
async function refuseClient(refused: Refused): Promise<never> {
  const { WsException } = await import("@nestjs/websockets");
  throw new WsException(decodeBody(refused));
}
