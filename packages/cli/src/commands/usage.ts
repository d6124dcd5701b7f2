import { renderUsageCsv, type UsagePeriodBody } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { printable } from "sluice/internal";
import { parseRange, type RangeFlags, type TimeRange } from "../arguments/parse-range.ts";
import { parseSubject } from "../arguments/parse-subject.ts";
import { controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import type { Signals } from "../early-signals.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";
import { renderUsageGroups, renderUsagePlot, renderUsageTotal, sumPeriods } from "./render-usage.ts";
import { addUsageTail } from "./usage-tail.ts";

export interface UsageOptions extends ControlOptions, RangeFlags {
  readonly policy?: string;
  readonly limitName?: string;
  readonly step?: string;
  readonly groupBy?: string;
  readonly csv?: boolean;
}

const steps = ["minute", "hour", "day"] as const;
const groups = ["policy", "limit", "subject"] as const;
const minuteMs = 60_000;
const stepMs = { minute: minuteMs, hour: 60 * minuteMs, day: 24 * 60 * minuteMs };
/** More than this is for a file, by the API. */
const most = 200_000;

/** `sluice usage`: what was decided over time, as a plot, or by policy, limit or subject, as a table. */
export async function showUsage(
  word: string | undefined,
  options: UsageOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, nowMs } = session;
  if (json && options.csv === true) throw new CommandError("--json and --csv are two forms of one answer; give one");
  const range = parseRange(options, nowMs());
  const { dimension, subject } = parseWhom(word);
  const groupBy = parseGroups(options.groupBy, dimension, subject);
  const step = parseStep(options.step, range);
  const filter = { policy: options.policy, limitName: options.limitName, dimension, subject };
  const asked = { ...filter, ...range, fromMs: range.fromMs - (range.fromMs % stepMs[step]), step, groupBy };
  const periods = await api.usage.list(asked).toArray(most);
  if (periods.length === most)
    terminal.stderr.write(`There is more than ${most} periods; ask for less time, or for a longer --step.\n`);
  if (json) {
    const totals = sumPeriods(periods);
    writeJson(session, { from_ms: asked.fromMs, to_ms: range.toMs, step, totals, periods });
  } else if (options.csv === true) terminal.stdout.write(renderUsageCsv(periods));
  else if (periods.length === 0) await sayNothingFound(word, asked, session);
  else writeUsage(periods, { ...asked, stepMs: stepMs[step], word }, session);
  return 0;
}

interface ShownUsage extends TimeRange {
  readonly step: (typeof steps)[number];
  readonly stepMs: number;
  readonly groupBy: readonly (typeof groups)[number][];
  readonly policy: string | undefined;
  readonly word: string | undefined;
}

function writeUsage(periods: readonly UsagePeriodBody[], shown: ShownUsage, session: ControlSession): void {
  const { terminal, width = 80, paint } = session;
  const { groupBy, step } = shown;
  const head = `${describe(shown.word, shown)}, ${groupBy.length === 0 ? `by ${step}` : `by ${groupBy.join(" and ")}`}:`;
  const body =
    groupBy.length === 0
      ? renderUsagePlot(periods, shown, width, paint)
      : renderUsageGroups(periods, groupBy, session.width);
  terminal.stdout.write(`${printable(head)}\n\n${body}\n${printable(renderUsageTotal(periods))}\n`);
}

/** `tenant=acme`, or `tenant` for all of them. */
function parseWhom(word: string | undefined): { readonly dimension?: string; readonly subject?: string } {
  if (word === undefined) return {};
  if (!word.includes("=")) return { dimension: word };
  const { dimension, value } = parseSubject(word);
  return { dimension, subject: value };
}

function parseGroups(
  given: string | undefined,
  dimension: string | undefined,
  subject: string | undefined,
): ShownUsage["groupBy"] {
  if (given === undefined) return dimension !== undefined && subject === undefined ? ["subject"] : [];
  const words = given.split(",");
  const wrong = words.find((one) => !(groups as readonly string[]).includes(one));
  if (wrong !== undefined)
    throw new CommandError(
      `--group-by is ${JSON.stringify(given)}; it should be some of policy, limit and subject, such as policy,limit`,
    );
  if (words.includes("subject") && dimension === undefined)
    throw new CommandError("--group-by subject needs a dimension, such as: sluice usage tenant --group-by subject");
  return groups.filter((one) => words.includes(one));
}

/** Absent: as fits the time. */
function parseStep(given: string | undefined, { fromMs, toMs }: TimeRange): (typeof steps)[number] {
  if (given === undefined) {
    const hours = (toMs - fromMs) / stepMs.hour;
    if (hours <= 3) return "minute";
    return hours <= 4 * 24 ? "hour" : "day";
  }
  const step = steps.find((one) => one === given);
  if (step === undefined)
    throw new CommandError(`--step is ${JSON.stringify(given)}; it should be minute, hour or day`);
  return step;
}

/** `Usage of tenant=acme from 2026-11-01 00:00 to 2026-11-18 16:20 UTC` */
function describe(
  word: string | undefined,
  { fromMs, toMs, policy }: TimeRange & { readonly policy?: string | undefined },
): string {
  const whose = [
    word === undefined ? undefined : word.includes("=") ? word : `each ${word}`,
    policy === undefined ? undefined : `policy ${policy}`,
  ].filter((one) => one !== undefined);
  const of = whose.length === 0 ? "all policies" : whose.join(" by ");
  return `Usage of ${of} from ${renderMinute(fromMs)} to ${renderMinute(toMs)} UTC`;
}

function renderMinute(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16).replace("T", " ");
}

type Asked = Omit<ShownUsage, "stepMs" | "word"> & {
  readonly dimension: string | undefined;
  readonly subject: string | undefined;
};

/** A misspelt subject finds nothing, and so does a dimension that servers do not track: says which of them it may be. */
async function sayNothingFound(word: string | undefined, asked: Asked, session: ControlSession): Promise<void> {
  const { api, terminal } = session;
  const { dimension, subject, fromMs, toMs, step } = asked;
  terminal.stdout.write(`${printable(`No ${lowerFirst(describe(word, asked))}.`)}\n`);
  const range = { fromMs, toMs, step };
  const say = (text: string): unknown => terminal.stderr.write(`${printable(text)}\n`);
  const all = sumPeriods(await api.usage.list(range).toArray(most));
  if (all.decided === 0) {
    say(
      "No server has stored any usage of this time, or you may see none of it. Hours and days appear after a minute;",
    );
    say("minutes after ten seconds: --since 1h --step minute. Longer ago: --since 30d.");
    return;
  }
  say(`All subjects and policies together have ${all.decided} decisions in this time: sluice usage`);
  if (dimension === undefined) return;
  const tracked = await api.usage.list({ ...range, dimension, groupBy: ["subject"] }).toArray(5);
  if (tracked.length === 0)
    say(
      `None is stored by ${dimension}: servers track the dimensions of --usage-by (tenant by default), from then on.`,
    );
  else if (subject !== undefined)
    say(
      `Is ${subject} written like that, also in upper and lower case? There is, for example, ${[...new Set(tracked.map((one) => one.subject))].join(", ")}.`,
    );
}

function lowerFirst(text: string): string {
  return `${text[0]!.toLowerCase()}${text.slice(1)}`;
}

/** `sluice usage` and `sluice usage tail` */
export function addUsageCommand(program: Command, run: RunOnControlPlane, signals: Signals): void {
  const usage = controlCommand(
    program,
    "usage [subject]",
    "Show how much a subject or a policy was used over time; or watch usage events.",
  ).helpCommand(false);
  addUsageTail(usage, run, signals);
  withExamples(
    withRange(usage)
      .option("--policy <id>", "only this policy")
      .option("--limit-name <name>", "only limits of this name, or by these dimensions")
      .option("--step <step>", "the length of a period: minute, hour or day (default: as fits the time)")
      .option("--group-by <fields>", "a table by these instead of a plot, with commas: policy, limit, subject")
      .option("--csv", "print a table for a spreadsheet"),
    `A subject such as tenant=acme, or a dimension such as tenant for all of its subjects; without either, all decisions.
Servers track the dimensions of --usage-by, tenant by default. Times are in UTC.`,
    "sluice usage tenant=acme --month",
    "sluice usage tenant=acme --group-by policy,limit --since 7d",
    "sluice usage tenant --month 2026-10 --csv > october.csv",
    "sluice usage tail --policy orders",
  ).action((word: string | undefined, options: UsageOptions) =>
    run(options, (session) => showUsage(word, options, session)),
  );
}

/** Which time to show. */
export function withRange(command: Command, months = true): Command {
  if (months) command.option("--month [month]", "this month, or one such as 2026-01");
  return command
    .option("--since <when>", "not before: how long ago, or a date (default 24h)")
    .option("--from <when>", "the same as --since")
    .option("--to <when>", "before: how long ago, or a date (default now)");
}
