import type { Decision } from "sluice";
import { maxCost } from "sluice/internal";
import { whenDecided } from "../../../service/create-decide.ts";
import type { Arguments } from "../arguments.ts";
import type { CommandContext } from "../command.ts";
import { invalidWord } from "../invalid-word.ts";
import { readWhole } from "../read-whole.ts";
import { failure } from "../replies.ts";
import type { ThrottleLimit } from "../throttle-limits.ts";

const wrongCount = failure("ERR", "wrong number of arguments for 'cl.throttle' command");

/** CL.THROTTLE key max_burst count period [quantity], answered as redis-cell does. */
export function throttle(
  args: Arguments,
  { service, throttleLimits, checks }: CommandContext,
): string | Promise<string> {
  if (args.count > 6) return wrongCount;
  checks.count += 1;
  const limit = throttleLimits.find(args);
  const dimensions = { key: args.text(1) };
  const { limits, capacity } = limit;
  // A quantity above the limit never fits, however large it is.
  const quantity = args.count === 5 ? 1 : readWhole(args.text(5), "quantity", 0, Number.MAX_SAFE_INTEGER);
  if (quantity > maxCost && quantity <= capacity)
    throw invalidWord("quantity", `must be at most ${maxCost} if the limit has room for more`);
  if (quantity === 0 || quantity > maxCost) {
    const decided = service.decide.one({ dimensions, limits, cost: 0, preview: true });
    return whenDecided(decided, (decision) => encodePeek(decision, limit, quantity > 0));
  }
  const decided = service.decide.one({ dimensions, limits, cost: quantity });
  // Written out: most answers are synchronous, and need no async function.
  return decided instanceof Promise ? decided.then((decision) => encode(decision, limit)) : encode(decided, limit);
}

/** Whether it was limited, the limit, what remains, and the seconds until a retry and until it is full again. */
function encode(decision: Decision, limit: ThrottleLimit): string {
  const { allowed, remaining = 0, retryAfterMs, resetAfterMs = 0 } = decision;
  if (isUncounted(decision)) return encodeUncounted(limit);
  const reset = secondsUntilReset(resetAfterMs, limit.isExact);
  if (allowed) return `*5\r\n:0\r\n:${limit.capacity}\r\n:${remaining}\r\n:-1\r\n:${reset}\r\n`;
  const retry = retryAfterMs === undefined ? -1 : Math.ceil(retryAfterMs / 1_000);
  return `*5\r\n:1\r\n:${limit.capacity}\r\n:${remaining}\r\n:${retry}\r\n:${reset}\r\n`;
}

/** How the counter stands: a cost of 0 always fits, more than all of it never does. */
function encodePeek(decision: Decision, limit: ThrottleLimit, isTooMuch: boolean): string {
  if (isUncounted(decision)) return encodeUncounted(limit);
  if (decision.degraded !== undefined) return encode(decision, limit);
  const reset = secondsUntilReset(decision.resetAfterMs ?? 0, limit.isExact);
  return `*5\r\n:${isTooMuch ? 1 : 0}\r\n:${limit.capacity}\r\n:${decision.remaining ?? 0}\r\n:-1\r\n:${reset}\r\n`;
}

/**
 * The counters are unavailable, which denies nothing here, or the kill switch allows everything; if it denies, that
 * counts.
 */
function isUncounted({ reason, allowed, degraded }: Decision): boolean {
  return reason === "degraded" && (allowed || degraded !== "kill_switch");
}

/** As if nothing was counted yet. */
function encodeUncounted({ capacity }: ThrottleLimit): string {
  return `*5\r\n:0\r\n:${capacity}\r\n:${capacity}\r\n:-1\r\n:0\r\n`;
}

/**
 * Rounded up. If a unit of the limit is worth a fraction of a nanosecond more or less, a time of whole seconds is
 * counted slightly longer, and arrives here as a millisecond too much.
 */
function secondsUntilReset(ms: number, isExact: boolean): number {
  return Math.ceil((isExact || ms <= 1 ? ms : ms - 1) / 1_000);
}
