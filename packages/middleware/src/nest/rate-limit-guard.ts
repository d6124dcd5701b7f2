import { type CanActivate, type ExecutionContext, Inject, Injectable } from "@nestjs/common";
import { attachTicket } from "../attach-ticket.ts";
import type { Gate, Passed, Refused, Verdict } from "../gate.ts";
import { warnOfProcess } from "../warn-of-process.ts";
import {
  type ContextKind,
  type Exchange,
  exchangeOf,
  kindOf,
  type NestRequest,
  type NestResponse,
  rawResponse,
} from "./exchange.ts";
import { bodyOf, RateLimitException } from "./rate-limit-exception.ts";
import { RouteGates } from "./route-gates.ts";
import { whenSent } from "./when-sent.ts";

const guarded = Symbol("sluice.guarded");

/**
 * Asks the limits before a handler of HTTP, GraphQL or WebSockets. `RateLimitModule` puts it before all of them; where it is
 * told not to, `@UseGuards(RateLimitGuard)` does so here and there. Standing at one handler twice it counts once.
 */
export class RateLimitGuard implements CanActivate {
  readonly #gates: RouteGates;

  constructor(gates: RouteGates) {
    this.#gates = gates;
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const kind = kindOf(context);
    if (kind === undefined) {
      const type = JSON.stringify(context.getType<string>());
      warnOfProcess("SLUICE_UNKNOWN_CONTEXT", `calls of type ${type} pass without being counted`);
      return true;
    }
    if (isGuarded(context)) return true;
    const gate = this.#gates.gateFor(context, kind);
    if (gate === undefined) return true;
    const exchange = exchangeOf(context, kind);
    const verdict = gate.decide(exchange.request);
    if (verdict instanceof Promise) return verdict.then((one) => admit(gate, exchange, kind, one));
    return admit(gate, exchange, kind, verdict);
  }
}

Injectable()(RateLimitGuard);
Inject(RouteGates)(RateLimitGuard, undefined, 0);

/** One call of a handler has one context, which all of its guards see. */
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

/** An answer of the app's own that cannot be sent is the app's error. Nest 10 lets requests hang whose filter throws. */
function checkAnswer({ status, headers }: Refused): void {
  if (!(status >= 100 && status <= 999)) throw new RangeError(`refuse must answer with a status, not with ${status}`);
  // As Node checks it; to import that of Node would load its whole HTTP client.
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(headers["content-type"]!)) {
    throw new TypeError("refuse must answer with a contentType that can stand in a header");
  }
}

/** On the response of Node, so that they also go out where a handler writes to it directly. */
function setHeaders(response: NestResponse, { headers }: Passed | Refused): void {
  const raw = rawResponse(response);
  if (raw.headersSent) return;
  // What type the answer to a refusal has, its writer says.
  for (const name in headers) if (name !== "content-type") raw.setHeader(name, headers[name]!);
}

/** As an error that gateways tell their clients about. */
async function refuseClient(refused: Refused): Promise<never> {
  const { WsException } = await import("@nestjs/websockets");
  throw new WsException(bodyOf(refused));
}
