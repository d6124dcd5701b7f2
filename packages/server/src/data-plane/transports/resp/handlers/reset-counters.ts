import type { GivenLimit } from "sluice";
import type { Arguments } from "../arguments.ts";
import type { CommandContext } from "../command.ts";
import { parseCheck } from "../parse-check.ts";
import { integer } from "../replies.ts";
import { throttleName } from "../throttle-limits.ts";

/** Counters of CL.THROTTLE are found by their key, whatever the numbers are. */
const anyThrottle: GivenLimit = {
  name: throttleName,
  by: ["key"],
  algorithm: "gcra",
  window: { limit: 1, per: { kind: "ms", ms: 1_000 }, burst: 1 },
};

/**
 * SLUICE.RESET with the words of a check, or SLUICE.RESET KEY key for a counter of CL.THROTTLE. Answers how many were
 * reset.
 */
export async function resetCounters(args: Arguments, { service, session }: CommandContext): Promise<string> {
  const isKey = args.count === 3 && args.bytes(1).toUpperCase() === "KEY";
  const request = isKey ? { dimensions: { key: args.text(2) }, limits: [anyThrottle] } : parseCheck(args);
  const counters = await service.reset(request, { caller: session.caller!, from: session.host });
  return integer(counters.length);
}
