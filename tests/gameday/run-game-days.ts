// npm run gameday [-- NAME… --list --write --json --bounded --soak-minutes N --from COMMIT]: plays game days on real servers.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { constants, cpus, loadavg, totalmem, type } from "node:os";
import { fileURLToPath } from "node:url";
import type { DayResult, GameDay } from "./game-day.ts";
import { gameDays } from "./game-days.ts";
import { findBroken, playGameDay } from "./play-game-day.ts";
import { type Orders, readOrders } from "./read-orders.ts";
import { type Played, renderGameDayPage } from "./render-game-day-page.ts";
import { renderPlot } from "./render-plot.ts";
import { seconds } from "./render-quantity.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = `${root}docs/game-days.md`;
const plots = `${root}docs/images/game-days`;

const orders = readOrders(process.argv.slice(2), gameDays);
switch (orders.kind) {
  case "help":
    process.stdout.write(orders.text);
    break;
  case "problem":
    process.stderr.write(`${orders.message}\nnpm run gameday -- --help shows the options.\n`);
    process.exitCode = 2;
    break;
  case "list":
    list(orders);
    break;
  case "play":
    await play(orders);
}

function list({ days, json }: Orders & { kind: "list" }): void {
  const listed = days.map(({ name, title, promises }) => ({ name, title, promises: Object.values(promises) }));
  const lines = listed.map(({ name, title, promises }) =>
    [`${name}  ${title}`, ...promises.map(({ text, timed }) => `    ${text}${timed ? " (timed)" : ""}`)].join("\n"),
  );
  process.stdout.write(`${json ? JSON.stringify(listed, null, 2) : lines.join("\n")}\n`);
}

async function play({ days, options, write, json }: Orders & { kind: "play" }): Promise<void> {
  const progress = json ? process.stderr : process.stdout;
  const commit = describeCommit();
  let closeAll = async (): Promise<void> => {};
  // Servers are processes that would go on without this one.
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void closeAll().finally(() => process.exit(128 + constants.signals[signal])));
  const all: Played[] = [];
  for (const day of days) {
    const began = { at: new Date().toISOString(), commit, machine: describeMachine() };
    const result = await playGameDay(day, options, (close) => {
      closeAll = close;
    });
    const played: Played = { ...began, done: day.done(options), result, title: day.title };
    all.push(played);
    progress.write(renderProgress(day, result));
    if (write) writeReport(played);
  }
  if (json) process.stdout.write(`${JSON.stringify(all, null, 2)}\n`);
  process.exitCode = all.some(({ result }) => findBroken(result).length > 0) ? 1 : 0;
}

function renderProgress({ name }: GameDay, { verdicts, facts, failure, tookMs }: DayResult): string {
  const lines = [
    ...verdicts.map(({ held, text, measured }) => `${held ? "✓" : "✗"} ${name}: ${text}: ${measured}`),
    ...facts.map(({ text }) => `    ${text}`),
    ...(failure === undefined ? [] : [failure]),
    `  ${seconds(tookMs)}`,
  ];
  return `${lines.join("\n")}\n`;
}

/** As soon as a day is over, so that a later one that fails loses nothing. */
function writeReport(played: Played): void {
  mkdirSync(plots, { recursive: true });
  for (const plot of played.result.plots) writeFileSync(`${plots}/${plot.name}.svg`, renderPlot(plot));
  let before = "";
  try {
    before = readFileSync(page, "utf8");
  } catch {
    // The first one.
  }
  writeFileSync(page, renderGameDayPage(before, played, gameDays));
}

function describeCommit(): string {
  const git = (...args: readonly string[]): string => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  try {
    // Reports of other days change nothing about this one.
    const changed = git("status", "--porcelain", "--", ".", ":!docs") === "" ? "" : ", with changes";
    return `${git("rev-parse", "--short=10", "HEAD")}${changed}`;
  } catch {
    return "unknown";
  }
}

function describeMachine(): string {
  const [cpu] = cpus();
  const [load = 0] = loadavg();
  const memory = Math.round(totalmem() / 2 ** 30);
  return (
    `${cpus().length} cores (${cpu?.model.trim() || "unknown"}), ${memory} GiB, ${type()}, Node ${process.versions.node}; ` +
    `its load was ${load.toFixed(1)} when the day began`
  );
}
