import { type Clock, createLimiter, MemoryCounters, parseWindow, SluiceError } from "sluice";
import { invalidOption } from "../check-options.ts";

/** Windows as policies write them: `10/s burst 5`. Several must all have room. */
export type PaceLimit = string | readonly string[];

/** Whether a cost passes now, else after how long; undefined if waiting does not help. Takes the cost if it passes. */
export type Gate = (
  cost: number,
  preview?: boolean,
) => { readonly allowed: boolean; readonly retryAfterMs: number | undefined };

/** One limit for any number of keys, each with a separate counter. */
export function createPaceLimit(windows: PaceLimit, clock: Clock): (key: string) => Gate {
  const list = [windows].flat();
  if (list.some((window) => typeof window !== "string"))
    throw invalidOption(
      "limit",
      'must be a string such as "10/s", or a list of them; options come second: pace("10/s", options)',
    );
  if (list.length === 0) throw invalidOption("limit", "must be a window, or a list of at least one");
  for (const window of list) checkWindow(window);
  const limiter = createLimiter({
    clock,
    counters: new MemoryCounters({ clock, maxCounters: 100_000 }),
    policies: {
      policies: [{ id: "pace", limits: [{ by: ["key"], windows: list }], on_failure: "open" }],
    },
  });
  return (key) =>
    (cost, preview = false) =>
      limiter.checkSync({ dimensions: { key }, cost, preview });
}

function checkWindow(window: string): void {
  try {
    parseWindow(window);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    const problems = error.problems.map(({ message }) => ({ path: ["limit"], message }));
    throw new SluiceError("invalid_request", `limit ${problems.map(({ message }) => message).join("; ")}`, problems);
  }
}
