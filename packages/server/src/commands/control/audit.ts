import type { AuditEntryBody } from "@sluice/protocol/admin";
import { printable } from "sluice";
import { auditKinds } from "../../control-plane/audit/audit-kinds.ts";
import { CommandError, type ExitCode } from "../terminal.ts";
import type { ControlOptions, ControlSession } from "./control-session.ts";
import type { Paint } from "./paint.ts";
import { parseSince } from "./parse-time.ts";
import { parseCount } from "./parse-version.ts";
import { renderInstant, renderMoment } from "./render-moment.ts";
import { renderTable } from "./render-table.ts";
import { writeJson } from "./write-json.ts";

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
  const records = await api.audit(filter, limit === undefined ? usual : parseCount("--limit", limit, most));
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
      whoOf(record),
      record.from === "" ? "-" : record.from,
      record.action,
      targetOf(record),
      record.outcome,
      record.why,
    ]),
    width,
  );
}

/** Subjects are written `user=u1` on a command line, and `user:u1` in the audit. */
function targetOf({ kind, target }: AuditEntryBody): string {
  return kind === "subject" ? target.replace(":", "=") : target;
}

function whoOf({ actor, role }: AuditEntryBody): string {
  return role === "" ? actor : `${actor} (${role})`;
}

function renderAuditDetails(records: readonly AuditEntryBody[]): string {
  return records
    .map((record) => {
      const head = `${renderInstant(record.at_ms)}  ${whoOf(record)}  ${record.action}  ${targetOf(record)}  ${record.outcome}  ${record.why}`;
      const parts = (["before", "after"] as const).flatMap((name) =>
        record[name] === undefined ? [] : [`  ${name.padEnd(7)}${printable(JSON.stringify(record[name]))}`],
      );
      return `${[printable(head), ...parts].join("\n")}\n`;
    })
    .join("");
}
