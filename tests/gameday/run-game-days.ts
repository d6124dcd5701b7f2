// npm run gameday [-- NAME… --list --write --json --bounded --soak-minutes 30 --from COMMIT]: plays game days on real servers.
import { parseArgs } from "node:util";
import type { DayResult, PlayOptions } from "./game-day.ts";
import { gameDays } from "./game-days.ts";
import { findBroken, playGameDay } from "./play-game-day.ts";

const { values: args, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    bounded: { type: "boolean", default: false },
    "soak-minutes": { type: "string", default: "30" },
    from: { type: "string" },
  },
});
const options: PlayOptions = {
  form: args.bounded ? "bounded" : "full",
  soakMinutes: Number(args["soak-minutes"]),
};
const results: DayResult[] = [];
for (const day of gameDays.filter(({ name }) => names.length === 0 || names.includes(name))) {
  const result = await playGameDay(day, options);
  results.push(result);
  for (const { held, text, measured } of result.verdicts)
    console.log(`${held ? "✓" : "✗"} ${day.name}: ${text}: ${measured}`);
  for (const { text } of result.facts) console.log(`    ${text}`);
  if (result.failure) console.log(result.failure);
  console.log(`  ${(result.tookMs / 1000).toFixed(1)} s`);
}
process.exitCode = results.some((one) => findBroken(one).length > 0) ? 1 : 0;
