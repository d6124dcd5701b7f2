import { parseArgs } from "node:util";
import type { GameDay, PlayOptions } from "./game-day.ts";

/** What a command line asks for. */
export type Orders =
  | { readonly kind: "help"; readonly text: string }
  | { readonly kind: "problem"; readonly message: string }
  | { readonly kind: "list"; readonly days: readonly GameDay[]; readonly json: boolean }
  | {
      readonly kind: "play";
      readonly days: readonly GameDay[];
      readonly options: PlayOptions;
      readonly write: boolean;
      readonly json: boolean;
    };

const soakMinutes = { full: 30, bounded: 0.2 };
const mostMinutes = 24 * 60;

/** Refuses what it does not know, and options that would change nothing. */
export function readOrders(args: readonly string[], all: readonly GameDay[]): Orders {
  const read = readArguments(args);
  if (typeof read === "string") return { kind: "problem", message: read };
  const { names, write, json, bounded, list, help, from } = read;
  if (help) return { kind: "help", text: renderHelp(all) };
  const unknown = names.find((name) => !all.some((day) => day.name === name));
  const days = all.filter(({ name }) => names.length === 0 || names.includes(name));
  const minutes = Number(read["soak-minutes"] ?? soakMinutes[bounded ? "bounded" : "full"]);
  const problem = [
    unknown !== undefined && `there is no game day "${unknown}"; there are ${all.map(({ name }) => name).join(", ")}`,
    list && (write || bounded || from !== undefined) && "--list plays nothing: use it with names and --json only",
    write && bounded && "--write reports the full form: leave out --bounded",
    read["soak-minutes"] !== undefined && !days.some(({ name }) => name === "soak") && "--soak-minutes is for soak",
    !(minutes > 0 && minutes <= mostMinutes) && `--soak-minutes must be a number up to ${mostMinutes}`,
    from !== undefined && !days.some(({ name }) => name === "upgrade") && "--from is for upgrade",
  ].find((one) => one !== false);
  if (problem !== undefined) return { kind: "problem", message: problem };
  if (list) return { kind: "list", days, json };
  const options: PlayOptions = {
    form: bounded ? "bounded" : "full",
    soakMinutes: minutes,
    ...(from === undefined ? {} : { upgradeFrom: from }),
  };
  return { kind: "play", days, options, write, json };
}

function readArguments(args: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        list: { type: "boolean", default: false },
        write: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        bounded: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
        "soak-minutes": { type: "string" },
        from: { type: "string" },
      },
    });
    return { ...values, names: positionals };
  } catch (error) {
    return (error as Error).message;
  }
}

function renderHelp(all: readonly GameDay[]): string {
  const width = Math.max(...all.map(({ name }) => name.length));
  return `Usage: npm run gameday [-- NAME… OPTIONS]

Plays game days on real servers under traffic: something breaks or changes, and what was promised about it is measured.
Without names it plays all of them, one after the other. Exits with 1 if a promise was broken.

${all.map(({ name, title }) => `  ${name.padEnd(width)}  ${title}`).join("\n")}

Options:
  --list              list the days and what they promise, without playing them
  --write             report them in docs/game-days.md; days that are not played keep their reports
  --json              print one JSON document instead of lines
  --bounded           play the short form, which takes seconds
  --soak-minutes N    how long the soak lasts (default: ${soakMinutes.full}, or ${soakMinutes.bounded} with --bounded)
  --from COMMIT       the commit that the rolling upgrade starts from (default: the one before the current)
  -h, --help          show this help
`;
}
