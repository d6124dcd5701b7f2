import { type DenialBody, type DenialPageBody, denialSubjectText, renderDenialCsv } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { printable } from "sluice/internal";
import { parseRange, type RangeFlags, type TimeRange } from "../arguments/parse-range.ts";
import { parseSubject } from "../arguments/parse-subject.ts";
import { parseCount } from "../arguments/parse-version.ts";
import { controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import type { Paint } from "../terminal/paint.ts";
import { renderTable } from "../terminal/render-table.ts";
import { renderInstant, renderMoment, renderSpan } from "../terminal/render-time.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";
import { sumPeriods } from "./render-usage.ts";
import { withRange } from "./usage.ts";

export interface DenialsOptions extends ControlOptions, RangeFlags {
  readonly policy?: string;
  readonly limitName?: string;
  readonly limit?: string;
  readonly csv?: boolean;
}

const usual = 50;
const most = 100_000;
const pageSize = 500;

interface DenialFilter extends TimeRange {
  readonly policy: string | undefined;
  readonly limitName: string | undefined;
  readonly dimension: string | undefined;
  readonly subject: string | undefined;
}

/** `sluice denials`: who was denied lately, by what and why, newest first. */
export async function showDenials(
  word: string | undefined,
  options: DenialsOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { terminal, json, nowMs, width, paint } = session;
  if (json && options.csv === true) throw new CommandError("--json and --csv are two forms of one answer; give one");
  const range = parseRange(options, nowMs());
  const whom = word === undefined ? undefined : parseSubject(word);
  const filter = {
    ...{ policy: options.policy, limitName: options.limitName, dimension: whom?.dimension, subject: whom?.value },
    // What is denied in this very moment is before now as well.
    ...{ fromMs: range.fromMs, toMs: options.to === undefined ? range.toMs + 60_000 : range.toMs },
  };
  const wanted = options.limit === undefined ? usual : parseCount("--limit", options.limit, most);
  const { records, denials, mixed } = await readDenials(filter, wanted, session);
  if (json) writeJson(session, { from_ms: range.fromMs, to_ms: range.toMs, denials, mixed, records });
  else if (options.csv === true) terminal.stdout.write(renderDenialCsv(records));
  else if (records.length === 0) await sayNoDenials(word, { ...filter, ...range }, session);
  else terminal.stdout.write(renderDenials(records, nowMs(), width, paint));
  const note = renderSampling(word, records, { denials, mixed });
  if (note !== "") terminal.stderr.write(printable(note).concat("\n"));
  return 0;
}

interface ReadDenials extends Pick<DenialPageBody, "denials" | "mixed"> {
  readonly records: readonly DenialBody[];
}

async function readDenials(filter: DenialFilter, wanted: number, { api }: ControlSession): Promise<ReadDenials> {
  const records: DenialBody[] = [];
  let counts = { denials: 0, mixed: 0 };
  let after: string | undefined;
  do {
    const limit = Math.min(pageSize, wanted - records.length);
    const page = await api.denials.page({ ...filter, limit, ...(after !== undefined && { after }) });
    // Later pages may count denials that came meanwhile.
    if (after === undefined) counts = page;
    records.push(...page.items);
    after = page.next;
  } while (after !== undefined && records.length < wanted);
  return { records, denials: counts.denials, mixed: counts.mixed };
}

export function renderDenials(
  records: readonly DenialBody[],
  nowMs: number,
  width: number | undefined,
  paint: Paint,
): string {
  return renderTable(
    [
      { title: "when" },
      { title: "times", align: "right" },
      { title: "subject", flexible: true },
      { title: "policy / limit", flexible: true },
      { title: "window" },
      { title: "reason", paint: (reason, shown) => (reason.endsWith("(shadow)") ? paint.faint(shown) : shown) },
      { title: "cost", align: "right" },
      { title: "left", align: "right" },
      { title: "retry after" },
      { title: "request", flexible: true },
    ],
    records.map((record) => [
      renderMoment(record.at_ms, nowMs),
      record.denials === 1 ? "" : `${record.denials} x`,
      renderWhom(record),
      record.policy === "" ? "-" : `${record.policy} v${record.version ?? "?"} / ${record.limit || "-"}`,
      record.window || "-",
      renderReason(record),
      String(record.cost),
      String(record.remaining ?? "-"),
      record.retry_after_ms === undefined ? "-" : renderSpan(Math.max(1_000, record.retry_after_ms)),
      record.request_id ?? record.dimensions.endpoint ?? "",
    ]),
    width,
  );
}

function renderWhom(record: DenialBody): string {
  const subject = denialSubjectText(record);
  const [first] = Object.entries(record.dimensions);
  const shown = subject === "" && first !== undefined ? first.join("=") : subject;
  return record.mixed ? `${shown} and others` : shown || "-";
}

function renderReason({ reason, degraded, shadow }: DenialBody): string {
  const why = degraded === undefined || degraded === reason ? reason : `${reason}, ${degraded}`;
  return shadow ? `${why} (shadow)` : why;
}

/** What the records stand for, if that is more than themselves. */
function renderSampling(
  word: string | undefined,
  records: readonly DenialBody[],
  { denials, mixed }: Pick<ReadDenials, "denials" | "mixed">,
): string {
  const shown = records.reduce((sum, record) => sum + record.denials, 0);
  const sampled =
    shown > records.length ? `${count(records.length, "record")} of ${count(shown, "denial")}, sampled.` : "";
  const more = denials > shown ? `There are ${denials - shown} earlier ones; --limit shows more.` : "";
  const hidden =
    word !== undefined && mixed > 0
      ? `${count(mixed, "denial")} of this time had too many subjects to be recorded one by one; some of them may be of ${word}.`
      : "";
  return [sampled, more, hidden].filter((text) => text !== "").join(" ");
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Says what to try next, and whether usage knows of denials that were not recorded, or are no longer kept. */
async function sayNoDenials(word: string | undefined, filter: DenialFilter, session: ControlSession): Promise<void> {
  const { api, terminal } = session;
  const { dimension, subject, policy, limitName, fromMs, toMs } = filter;
  const whose = [word, policy && `policy ${policy}`, limitName && `limit ${limitName}`].filter(Boolean).join(" by ");
  const time = `from ${renderInstant(fromMs)} to ${renderInstant(toMs)}`;
  terminal.stdout.write(`${printable(`No denials${whose === "" ? "" : ` of ${whose}`} ${time}.`)}\n`);
  const say = (text: string): unknown => terminal.stderr.write(`${printable(text)}\n`);
  const usage = { policy, limitName, dimension, subject, fromMs: fromMs - (fromMs % 60_000), toMs };
  const { denied, decided } = sumPeriods(await api.usage.list({ ...usage, step: "minute" }).toArray(most));
  if (denied > 0)
    say(`Usage counts ${denied} denials in this time, which are not recorded: they are kept for --denial-retention.`);
  else if (decided > 0) say(`All ${decided} requests of this time were allowed: sluice usage${word ? ` ${word}` : ""}`);
  say("Longer ago: --since 3d. The denials of another node appear after ten seconds.");
  if (word === undefined) say("Which subjects are denied now: sluice top --by denials");
  else say(`Which limits apply to it, and how much is left: sluice subject ${word}`);
}

/** `sluice denials` */
export function addDenialsCommand(program: Command, run: RunOnControlPlane): void {
  withExamples(
    withRange(controlCommand(program, "denials [subject]", "Show who was denied lately, by what and why."), false)
      .option("--policy <id>", "only by this policy")
      .option("--limit-name <name>", "only by limits of this name, or by these dimensions")
      .option("--limit <number>", `most records (default ${usual})`)
      .option("--csv", "print a table for a spreadsheet"),
    `A subject such as tenant=acme finds every request of it, also if a limit by another dimension denied it. Under a flood, a
record stands for several denials; their number is in the column times.`,
    "sluice denials tenant=acme --since 1h",
    "sluice denials --policy orders --limit 500 --csv > denials.csv",
  ).action((word: string | undefined, options: DenialsOptions) =>
    run(options, (session) => showDenials(word, options, session)),
  );
}
