import type { DayResult, GameDay, Verdict } from "./game-day.ts";
import { findBroken } from "./play-game-day.ts";
import { seconds } from "./render-quantity.ts";

/** A day that was played, with what its report says about when and where. */
export interface Played {
  readonly title: string;
  readonly done: readonly string[];
  readonly result: DayResult;
  /** ISO 8601. */
  readonly at: string;
  readonly commit: string;
  readonly machine: string;
}

const columns = 120;

/** The page with a new report of one day. The reports of all others stay as they are in `before`. */
export function renderGameDayPage(before: string, played: Played, days: readonly GameDay[]): string {
  const { day } = played.result;
  const rows = days.flatMap(({ name }) => (name === day ? [renderRow(played)] : findRow(before, name)));
  const sections = days.flatMap(({ name }) => (name === day ? [renderSection(played)] : findSection(before, name)));
  return `# Game days

This page is for operators who want to know what happens when something breaks or changes in production.
Each game day below does one such thing to real servers under traffic, as processes with the settings that are named.
Its table has what was promised, what was measured, and whether the promise was kept.

\`npm run gameday\` plays them all, \`npm run gameday -- chaos whale\` some of them; with \`--write\` it writes this page.
\`npm run gameday -- --help\` shows the other options.
\`npm test\` plays short forms, and fails if a promise is broken that does not depend on the machine.
Other tests play [faults of counter servers](faults.md) one by one.

| name | day | promises kept | played on |
|---|---|---:|---|
${rows.join("\n")}

Promises with a † depend on the machine: servers, counters, traffic and measurement share its cores,
and a machine that is busy with other work can break them.

${sections.join("\n\n")}
`;
}

const opening = (name: string): string => `<!-- ${name}: written by npm run gameday -- ${name} --write -->`;
const closing = (name: string): string => `<!-- end of ${name} -->`;

function findRow(page: string, name: string): readonly string[] {
  return page.split("\n").filter((line) => line.startsWith(`| \`${name}\` |`));
}

function findSection(page: string, name: string): readonly string[] {
  const [from, to] = [page.indexOf(opening(name)), page.indexOf(closing(name))];
  return from < 0 || to < 0 ? [] : [page.slice(from, to + closing(name).length)];
}

function renderRow({ title, result, at }: Played): string {
  const { day, verdicts } = result;
  const kept = verdicts.filter(({ held }) => held).length;
  const note = findBroken(result).length === 0 ? "" : findBroken(result, { timed: false }).length > 0 ? " ✗" : " †";
  return `| \`${day}\` | [${title}](#${findAnchor(title)}) | ${kept} of ${verdicts.length}${note} | ${at.slice(0, 10)} |`;
}

/** As renderers of Markdown make it from a heading. */
function findAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} -]/gu, "")
    .replaceAll(" ", "-");
}

function renderSection({ title, done, result, at, commit, machine }: Played): string {
  const { day, verdicts, facts, plots, failure, tookMs } = result;
  return [
    opening(day),
    `## ${title}`,
    "",
    ...done.flatMap((line) => wrap(line)),
    "",
    "| promised | measured | kept |",
    "|---|---|---|",
    ...verdicts.map(renderVerdict),
    "",
    ...(failure === undefined ? [] : [`**It could not be played to its end.** ${failure.split("\n")[0]}`, ""]),
    ...facts.flatMap(({ text }) => wrap(`- ${text}.`, "  ")),
    ...(facts.length === 0 ? [] : [""]),
    ...plots.flatMap((plot) => [`![${plot.title}](images/game-days/${plot.name}.svg)`, ""]),
    ...wrap(
      `Played by \`npm run gameday -- ${day}\` on ${at.slice(0, 10)}, in ${seconds(tookMs)}, at commit ${commit}.`,
    ),
    ...wrap(`The machine: ${machine}.`),
    closing(day),
  ].join("\n");
}

function renderVerdict({ text, timed, measured, held }: Verdict): string {
  const cells = [`${text}${timed ? " †" : ""}`, measured, held ? "yes" : "**no**"];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
}

/** Breaks a sentence into lines that fit. */
function wrap(sentence: string, indent = ""): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of sentence.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
