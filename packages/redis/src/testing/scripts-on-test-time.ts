import { createHash } from "node:crypto";
import { ManualClock } from "sluice";
import { conversationStartMs } from "sluice/testing";
import type { ScriptTuning } from "../ask/lane.ts";
import { type Script, scripts } from "../scripts.generated.ts";

/**
 * The server expires keys by its own clock, which keeps running while test time stands still: on a busy machine a key
 * can expire in the middle of a conversation that took no test time at all. This gives every key an hour more than the
 * script asked for.
 */
const lastingKeys = `
local server = redis
local function lengthened(run, command, ...)
  local words = { ... }
  if command == 'PEXPIRE' then words[2] = words[2] + 3600000 end
  for i = 3, #words do
    if words[i] == 'PX' then words[i + 1] = words[i + 1] + 3600000 end
  end
  return run(command, unpack(words))
end
local redis = {
  call = function(...) return lengthened(server.call, ...) end,
  pcall = function(...) return lengthened(server.pcall, ...) end,
}
`;

/**
 * The scripts as shipped, except for one line: they take the time from their last two arguments instead of the server,
 * so that a test can move it. With `keysLast` their keys outlive any stall of the machine; a test that reads how long a
 * key lives needs them as shipped.
 */
export function scriptsOnTestTime(clock: ManualClock, { keysLast = false }: { keysLast?: boolean } = {}): ScriptTuning {
  const entries = Object.entries(scripts).map(([name, { source }]): [string, Script] => {
    const moved = source.replace("redis.call('TIME')", "{ ARGV[#ARGV - 1], ARGV[#ARGV] }");
    if (moved === source) throw new Error(`the script ${name} does not ask for the time as expected`);
    const tuned = keysLast ? lastingKeys + moved : moved;
    return [name, { source: tuned, digest: createHash("sha1").update(tuned).digest("hex") }];
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
