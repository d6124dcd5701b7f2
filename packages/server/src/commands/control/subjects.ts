import type {
  EffectiveLimitBody,
  SubjectBody,
  SubjectChangeBody,
  SubjectResetBody,
  WindowUsageBody,
} from "@sluice/protocol/admin";
import { parseWindow, printable, renderWindow } from "sluice";
import type { ExitCode } from "../terminal.ts";
import { type ChangeFlags, demandNoWarnings, nothingDone, settleChange, tellWarnings } from "./change-flags.ts";
import { confirm } from "./confirm.ts";
import { withSubjectAdvice } from "./conflict-advice.ts";
import type { ControlOptions, ControlSession } from "./control-session.ts";
import { parseSubject } from "./parse-subject.ts";
import { renderMoment, renderWhile } from "./render-moment.ts";
import { renderFields, renderTable } from "./render-table.ts";
import { writeJson } from "./write-json.ts";

/** `sluice subject`: the limits that hold for somebody, and where each number comes from. */
export async function showSubject(word: string, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, nowMs, width } = session;
  const subject = await api.subject(parseSubject(word));
  if (json) writeJson(session, subject);
  else terminal.stdout.write(renderSubject(subject, nowMs(), width));
  return 0;
}

export function renderSubject(subject: SubjectBody, nowMs: number, width: number | undefined): string {
  const head = renderFields([
    ["subject", `${subject.dimension}=${subject.value}`],
    ["tier", subject.tier ?? "none"],
  ]);
  const { effective = [] } = subject;
  if (effective.length === 0) return `${head}\nNo policy limits by ${printable(subject.dimension)}.\n`;
  const rows = effective.flatMap((limit) =>
    limit.windows.map((window, index) => [
      index === 0 ? `${limit.policy} / ${limit.limit}` : "",
      index === 0 ? String(limit.version) : "",
      windowText(window),
      index === 0 ? sourceText(limit, nowMs) : "",
      usedText(limit.usage?.[index]),
      index === 0 && limit.mode === "shadow" ? "shadow" : "",
    ]),
  );
  const columns = [
    { title: "limit", flexible: true },
    { title: "version", align: "right" as const },
    { title: "window" },
    { title: "from" },
    { title: "used" },
    { title: "" },
  ];
  return `${head}\n${renderTable(columns, rows, width)}`;
}

export function windowText(window: unknown): string {
  return renderWindow(parseWindow(window));
}

export function sourceText({ source, by }: EffectiveLimitBody, nowMs: number): string {
  const beside = by.length > 1 ? `, by ${by.join(" and ")}` : "";
  switch (source.kind) {
    case "policy":
      return `the policy${beside}`;
    case "tier":
      return `tier ${source.tier}${beside}`;
    case "custom":
      return `its own${beside}`;
    case "override":
      return `an override that ends ${renderMoment(source.until_ms, nowMs)}${beside}`;
  }
}

function usedText(usage: WindowUsageBody | undefined): string {
  if (usage === undefined) return "-";
  const { used, remaining, reset_after_ms } = usage;
  if (used === 0) return `none, ${remaining} left`;
  return `${used}, ${remaining} left${reset_after_ms === undefined ? "" : `, as new in ${renderWhile(reset_after_ms)}`}`;
}

export interface SubjectResetOptions extends ControlOptions, ChangeFlags {
  readonly policy?: string;
}

/** `sluice subject reset`: every counter of a subject, on every node. 1 where there is none. */
export async function resetSubject(
  word: string,
  more: readonly string[],
  options: SubjectResetOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json } = session;
  const subject = parseSubject(word);
  const others = more.map(parseSubject).map(({ dimension, value }) => [dimension, value] as const);
  const alsoBy = others.length === 0 ? undefined : Object.fromEntries(others);
  const wish = { why: options.why, dryRun: options.dryRun };
  const done = await api.resetSubject(subject, { policy: options.policy, also_by: alsoBy }, wish);
  if (!json) {
    terminal.stdout.write(renderReset(word, done));
    if (options.dryRun === true) terminal.stdout.write(nothingDone);
  }
  const given = [subject.dimension, ...others.map(([dimension]) => dimension)];
  for (const { limit, by } of done.skipped) {
    const missing = by.filter((name) => !given.includes(name)).map((name) => `${name}=…`);
    terminal.stderr.write(
      `${printable(`${limit} counts by ${by.join(" and ")}, and was left as it is; add ${missing.join(" ")} to reset it`)}.\n`,
    );
  }
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return done.limits.length === 0 ? 1 : exitCode;
}

function renderReset(word: string, { limits, dry_run: dryRun }: SubjectResetBody): string {
  if (limits.length === 0) return `Nothing was reset: no limit counts by ${printable(word)} alone.\n`;
  const list = limits.map((limit) => `  ${printable(limit.replace("/", " / "))}\n`).join("");
  return `${printable(word)}: ${dryRun === true ? "would be reset" : "reset"}, with blocks lifted:\n${list}`;
}

export interface TierOptions extends ControlOptions, ChangeFlags {
  readonly strict?: boolean;
}

/** `sluice tier get` */
export async function tierGet(word: string, session: ControlSession): Promise<ExitCode> {
  const { dimension, value, version, tier } = await session.api.subject(parseSubject(word));
  if (session.json) writeJson(session, { dimension, value, version, tier: tier ?? null });
  else session.terminal.stdout.write(`${tier === undefined ? "none" : printable(tier)}\n`);
  return 0;
}

/** `sluice tier set`, and with no tier `sluice tier clear`, which is 1 where there is none to clear. */
export async function tierSet(
  word: string,
  tier: string | undefined,
  options: TierOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, nowMs } = session;
  const subject = parseSubject(word);
  const before = await api.subject(subject);
  const wish = { why: options.why, expected: before.version, dryRun: options.dryRun };
  const put = (dryRun: boolean | undefined): Promise<SubjectChangeBody> =>
    tier === undefined ? api.clearTier(subject, { ...wish, dryRun }) : api.setTier(subject, tier, { ...wish, dryRun });
  await demandNoWarnings(options, () => put(true), session);
  const harmless = before.tier === undefined || before.tier === tier || options.dryRun === true;
  const question = `${word} has tier ${before.tier}. ${tier === undefined ? "Remove it?" : `Give it tier ${tier} instead?`}`;
  if (!(await confirm({ question, yes: harmless || options.yes === true }, terminal))) return 1;
  const change = put(options.dryRun);
  const done = await change.catch((error: unknown) => {
    throw withSubjectAdvice(error, word, nowMs());
  });
  tellWarnings(done, session);
  const nothingToClear = tier === undefined && before.tier === undefined;
  if (!json && nothingToClear) terminal.stdout.write(`${printable(word)} has no tier; nothing was changed.\n`);
  else if (!json) {
    const was =
      before.tier === tier ? "as before" : before.tier === undefined ? "it had none" : `before, it was ${before.tier}`;
    const now = done.subject.tier === undefined ? "no tier" : `tier ${done.subject.tier}`;
    terminal.stdout.write(`${printable(word)} has ${printable(now)} (${printable(was)}).\n`);
    if (options.dryRun === true) terminal.stdout.write(nothingDone);
  }
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return nothingToClear ? 1 : exitCode;
}
