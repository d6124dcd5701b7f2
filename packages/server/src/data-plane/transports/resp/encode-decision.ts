import type { Decision } from "sluice";
import { bulk, type RespVersion } from "./replies.ts";

/** Policies' ids, scopes and reasons as they are sent. They repeat; if they do not, the map starts anew. */
const known = new Map<string, string>();
const maxKnown = 2_000;

function word(text: string): string {
  let encoded = known.get(text);
  if (encoded === undefined) {
    if (known.size >= maxKnown) known.clear();
    encoded = bulk(text);
    known.set(text, encoded);
  }
  return encoded;
}

/**
 * A decision as SLUICE.CHECK answers it. In RESP2 an array: allowed, limit, remaining, retry_after_ms, reset_after_ms,
 * reason, policy, scope; missing numbers are −1. In RESP3 a map with these names and a few more, and null.
 */
export function encodeDecision(decision: Decision, version: RespVersion): string {
  return version === 2 ? encodeArray(decision) : encodeMap(decision);
}

function encodeArray(decision: Decision): string {
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs, reason, policy, scope } = decision;
  return (
    `*8\r\n:${allowed ? 1 : 0}\r\n:${orNever(limit)}\r\n:${orNever(remaining)}\r\n` +
    `:${orNever(retryAfterMs)}\r\n:${orNever(resetAfterMs)}\r\n` +
    `${word(reason)}${orNil(policy)}${orNil(scope)}`
  );
}

/** Limits of buckets may be fractional; only whole units fit. */
function orNever(value: number | undefined): number {
  return value === undefined || value === Number.POSITIVE_INFINITY ? -1 : Math.floor(value);
}

function orNil(text: string | undefined): string {
  return text === undefined ? "$-1\r\n" : word(text);
}

function encodeMap(decision: Decision): string {
  const { cost, limit, remaining, retryAfterMs, resetAfterMs, policy, scope, degraded } = decision;
  return (
    `%13\r\n+allowed\r\n${flag(decision.allowed)}+limit\r\n${orNull(limit)}+remaining\r\n${orNull(remaining)}` +
    `+retry_after_ms\r\n${orNull(retryAfterMs)}+reset_after_ms\r\n${orNull(resetAfterMs)}` +
    `+reason\r\n${word(decision.reason)}+policy\r\n${orNone(policy)}+scope\r\n${orNone(scope)}` +
    `+cost\r\n:${cost}\r\n+state\r\n${word(decision.state)}+replayed\r\n${flag(decision.replayed)}` +
    `+preview\r\n${flag(decision.preview)}+degraded\r\n${orNone(degraded)}`
  );
}

function flag(value: boolean): string {
  return value ? "#t\r\n" : "#f\r\n";
}

function orNull(value: number | undefined): string {
  return value === undefined || value === Number.POSITIVE_INFINITY ? "_\r\n" : `:${Math.floor(value)}\r\n`;
}

function orNone(text: string | undefined): string {
  return text === undefined ? "_\r\n" : word(text);
}
