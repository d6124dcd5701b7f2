import { createHash } from "node:crypto";
import { ManualClock } from "sluice";
import { conversationStartMs } from "sluice/testing";
import type { ScriptTuning } from "../ask/lane.ts";
import { type Script, scripts } from "../scripts.generated.ts";

/**
 * The very scripts that are shipped, but for one line: they take the time from their last two arguments instead of the
 * server, so that a test can move it.
 */
export function scriptsOnTestTime(clock: ManualClock): ScriptTuning {
  const entries = Object.entries(scripts).map(([name, { source }]): [string, Script] => {
    const moved = source.replace("redis.call('TIME')", "{ ARGV[#ARGV - 1], ARGV[#ARGV] }");
    if (moved === source) throw new Error(`the script ${name} does not ask for the time as expected`);
    return [name, { source: moved, digest: createHash("sha1").update(moved).digest("hex") }];
  });
  return {
    scripts: Object.fromEntries(entries) as typeof scripts,
    extraArguments: () => {
      const us = Math.round(clock.epochMs() * 1000);
      return [String(Math.floor(us / 1e6)), String(us % 1e6)];
    },
  };
}

export function testTime(): ManualClock {
  return new ManualClock(conversationStartMs);
}
