import { type Decision, maxCost } from "sluice";
import { whenDecided } from "../../../service/decide.ts";
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
  // What is larger than the limit never fits, however large it is.
  const quantity = args.count === 5 ? 1 : readWhole(args.text(5), "quantity", 0, Number.MAX_SAFE_INTEGER);
  if (quantity > maxCost && quantity <= capacity)
    throw invalidWord("quantity", `must be at most ${maxCost} where the limit has room for more`);
  if (quantity === 0 || quantity > maxCost) {
    const decided = service.decide.one({ dimensions, limits, cost: 0, preview: true });
    return whenDecided(decided, (decision) => encodePeek(decision, limit, quantity > 0));
  }
  const decided = service.decide.one({ dimensions, limits, cost: quantity });
  // Spelt out: most answers are there at once, and need no function to wait with.
  return decided instanceof Promise ? decided.then((decision) => encode(decision, limit)) : encode(decided, limit);
}

/** Whether it was limited, the limit, what remains, and in how many seconds to come back, and it is whole again. */
function encode(decision: Decision, limit: ThrottleLimit): string {
  const { allowed, remaining = 0, retryAfterMs, resetAfterMs = 0 } = decision;
  if (isUncounted(decision)) return encodeUncounted(limit);
  const reset = secondsUntilReset(resetAfterMs, limit.isExact);
  if (allowed) return `*5\r\n:0\r\n:${limit.capacity}\r\n:${remaining}\r\n:-1\r\n:${reset}\r\n`;
  const retry = retryAfterMs === undefined ? -1 : Math.ceil(retryAfterMs / 1_000);
  return `*5\r\n:1\r\n:${limit.capacity}\r\n:${remaining}\r\n:${retry}\r\n:${reset}\r\n`;
}

/** How the counter stands: nothing of it always fits, more than all of it never does. */
function encodePeek(decision: Decision, limit: ThrottleLimit, isTooMuch: boolean): string {
  if (isUncounted(decision)) return encodeUncounted(limit);
  if (decision.degraded !== undefined) return encode(decision, limit);
  const reset = secondsUntilReset(decision.resetAfterMs ?? 0, limit.isExact);
  return `*5\r\n:${isTooMuch ? 1 : 0}\r\n:${limit.capacity}\r\n:${decision.remaining ?? 0}\r\n:-1\r\n:${reset}\r\n`;
}

/** Counters are away, which denies nobody here, or the kill switch lets everything pass; where it denies, it does. */
function isUncounted({ reason, allowed, degraded }: Decision): boolean {
  return reason === "degraded" && (allowed || degraded !== "kill_switch");
}

/** As if nothing was counted yet. */
function encodeUncounted({ capacity }: ThrottleLimit): string {
  return `*5\r\n:0\r\n:${capacity}\r\n:${capacity}\r\n:-1\r\n:0\r\n`;
}

/**
 * Rounded up. Where a unit of the limit is worth a fraction of a nanosecond more or less, a time that is whole seconds by its
 * numbers is counted a little longer, and comes here as a millisecond too much.
 */
function secondsUntilReset(ms: number, isExact: boolean): number {
  return Math.ceil((isExact || ms <= 1 ? ms : ms - 1) / 1_000);
}
