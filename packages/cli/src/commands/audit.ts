import { type AuditEntryBody, auditKinds } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { printable } from "sluice/internal";
import { parseSince } from "../arguments/parse-time.ts";
import { parseCount } from "../arguments/parse-version.ts";
import { controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import type { Paint } from "../terminal/paint.ts";
import { renderTable } from "../terminal/render-table.ts";
import { renderInstant, renderMoment } from "../terminal/render-time.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";

export interface AuditOptions extends ControlOptions {
  readonly kind?: string;
  readonly target?: string;
  readonly actor?: string;
  readonly action?: string;
  readonly outcome?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: string;
  /** Also what was before and after. */
  readonly details?: boolean;
}

const usual = 50;
const most = 100_000;

/** `sluice audit`: who changed what, or was refused, newest first. */
export async function showAudit(options: AuditOptions, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, nowMs, width, paint } = session;
  const { kind, target, actor, action, outcome, since, until, limit } = options;
  if (outcome !== undefined && outcome !== "done" && outcome !== "refused")
    throw new CommandError(`--outcome is ${JSON.stringify(outcome)}; it should be done or refused`);
  if (kind !== undefined) demandKind("--kind", kind, kind);
  if (action !== undefined) demandKind("--action", action, action.split(".", 1)[0]!);
  const sinceMs = since === undefined ? undefined : parseSince("--since", since, nowMs());
  const untilMs = until === undefined ? undefined : parseSince("--until", until, nowMs());
  if (sinceMs !== undefined && untilMs !== undefined && untilMs <= sinceMs)
    throw new CommandError(
      `--until ${until} is before --since ${since}, so that no record is between them; such as: --since 2h --until 1h`,
    );
  const filter = {
    kind,
    // Subjects are written `user=u1` on a command line, and `user:u1` in the audit.
    target: kind === "subject" || kind === undefined ? target?.replace(/^([\w.-]+)=/, "$1:") : target,
    actor,
    action,
    outcome,
    sinceMs,
    untilMs,
  };
  const records = await api.audit
    .list(filter)
    .toArray(limit === undefined ? usual : parseCount("--limit", limit, most));
  if (json) writeJson(session, { records });
  else if (options.details === true) terminal.stdout.write(renderAuditDetails(records));
  else terminal.stdout.write(renderAudit(records, nowMs(), width, paint));
  return 0;
}

/** A misspelt word would find nothing, and look as if nothing had happened. */
function demandKind(flag: string, given: string, kind: string): void {
  if ((auditKinds as readonly string[]).includes(kind)) return;
  const wanted = flag === "--kind" ? "" : "a kind and what was done to it, such as policy.put. Kinds are ";
  throw new CommandError(`${flag} is ${JSON.stringify(given)}; it should be ${wanted}${listed(auditKinds)}`);
}

function listed(words: readonly string[]): string {
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

export function renderAudit(
  records: readonly AuditEntryBody[],
  nowMs: number,
  width: number | undefined,
  paint: Paint,
): string {
  if (records.length === 0) return "The audit has no such records.\n";
  return renderTable(
    [
      { title: "when" },
      { title: "who", flexible: true },
      { title: "from" },
      { title: "action" },
      { title: "target", flexible: true },
      { title: "outcome", paint: (outcome, shown) => (outcome === "refused" ? paint.bad(shown) : shown) },
      { title: "why", flexible: true },
    ],
    records.map((record) => [
      renderMoment(record.at_ms, nowMs),
      renderActor(record),
      record.from === "" ? "-" : record.from,
      record.action,
      renderTarget(record),
      record.outcome,
      record.why,
    ]),
    width,
  );
}

/** Subjects are written `user=u1` on a command line, and `user:u1` in the audit. */
function renderTarget({ kind, target }: AuditEntryBody): string {
  return kind === "subject" ? target.replace(":", "=") : target;
}

function renderActor({ actor, role }: AuditEntryBody): string {
  return role === "" ? actor : `${actor} (${role})`;
}

function renderAuditDetails(records: readonly AuditEntryBody[]): string {
  return records
    .map((record) => {
      const head = `${renderInstant(record.at_ms)}  ${renderActor(record)}  ${record.action}  ${renderTarget(record)}  ${record.outcome}  ${record.why}`;
      const parts = (["before", "after"] as const).flatMap((name) =>
        record[name] === undefined ? [] : [`  ${name.padEnd(7)}${printable(JSON.stringify(record[name]))}`],
      );
      return `${[printable(head), ...parts].join("\n")}\n`;
    })
    .join("");
}

/** `sluice audit` */
export function addAuditCommand(program: Command, run: RunOnControlPlane): void {
  withExamples(
    controlCommand(program, "audit", "Show who changed what, or was refused, newest first.")
      .option("--kind <kind>", `only what was done to this: ${auditKinds.join(", ")}`)
      .option("--target <target>", "only what was done to this one: a policy's id, user=u1, …")
      .option("--actor <name>", "only what was done with the token of this name")
      .option("--action <action>", "only this: policy.put, kill_switch.on, …")
      .option("--outcome <outcome>", "only what was: done or refused")
      .option("--since <when>", "not before: how long ago, or a date")
      .option("--until <when>", "before: how long ago, or a date")
      .option("--limit <number>", "most records (default 50)")
      .option("--details", "also what was before and after"),
    "",
    "sluice audit --since 2h",
    "sluice audit --kind subject --target user=u1 --details",
    "sluice audit --outcome refused --actor ci --json",
  ).action((options: AuditOptions) => run(options, (session) => showAudit(options, session)));
}
