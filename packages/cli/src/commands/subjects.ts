import type {
  EffectiveLimitBody,
  KeptSubjectBody,
  SubjectBody,
  SubjectChangeBody,
  SubjectResetBody,
  WindowUsageBody,
} from "@sluice/protocol/admin";
import type { Command } from "commander";
import { parseWindow } from "sluice";
import { printable, renderWindow } from "sluice/internal";
import { parseSubject } from "../arguments/parse-subject.ts";
import {
  type ChangeFlags,
  demandNoWarnings,
  nothingDone,
  settleChange,
  writeWarnings,
} from "../control/change-flags.ts";
import { withSubjectAdvice } from "../control/conflict-advice.ts";
import { changeCommand, controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { RefusedRequest } from "../control/refused-request.ts";
import { renderBlock } from "../control/render-kept-subject.ts";
import { confirm } from "../terminal/confirm.ts";
import { renderFields, renderTable } from "../terminal/render-table.ts";
import { renderMoment, renderSpan } from "../terminal/render-time.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";
import { planList } from "./plans.ts";
import { addSubjectBlock } from "./subject-block.ts";

/** `sluice subject`: the limits that hold for a subject, and where each number comes from. */
export async function showSubject(word: string, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, nowMs, width } = session;
  const subject = await api.subjects.get(parseSubject(word));
  if (json) writeJson(session, subject);
  else terminal.stdout.write(renderSubject(subject, nowMs(), width));
  return 0;
}

export function renderSubject(subject: SubjectBody, nowMs: number, width: number | undefined): string {
  const head = renderFields([
    ["subject", `${subject.dimension}=${subject.value}`],
    ["tier", subject.tier ?? "none"],
    ...(subject.block === undefined ? [] : [["blocked", renderBlock(subject.block, nowMs)] as const]),
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
  return `${used}, ${remaining} left${reset_after_ms === undefined ? "" : `, as new in ${renderSpan(reset_after_ms)}`}`;
}

export interface SubjectListOptions extends ControlOptions {
  readonly tier?: string;
  readonly by?: string;
}

/** `sluice subject list`: subjects about which something is stored, of a dimension or with a tier. */
export async function listSubjects({ tier, by }: SubjectListOptions, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, width } = session;
  if (tier === undefined && by === undefined)
    throw new CommandError("name a tier or a dimension: sluice subject list --tier pro, or --by tenant");
  const dimensions = by === undefined ? await findDimensions(tier ?? "", session) : [by];
  const subjects: KeptSubjectBody[] = [];
  for (const dimension of dimensions) subjects.push(...(await api.subjects.list(dimension, { tier }).toArray()));
  if (json) writeJson(session, { subjects });
  else terminal.stdout.write(renderSubjects(subjects, width));
  return 0;
}

/** The dimensions whose subjects have the tier. */
async function findDimensions(tier: string, { api }: ControlSession): Promise<readonly string[]> {
  try {
    return (await api.plans.get(tier)).subjects.map(({ dimension }) => dimension);
  } catch (error) {
    if (error instanceof RefusedRequest && error.body.code === "resource_not_found") return [];
    throw error;
  }
}

export function renderSubjects(subjects: readonly KeptSubjectBody[], width: number | undefined): string {
  if (subjects.length === 0) return "There are no such subjects in the policy store.\n";
  return renderTable(
    [
      { title: "subject", flexible: true },
      { title: "tier" },
      { title: "own limits", align: "right" },
      { title: "blocked" },
    ],
    subjects.map(({ dimension, value, tier = "-", limits, block }) => [
      `${dimension}=${value}`,
      tier,
      String(limits.length),
      block === undefined ? "" : "yes",
    ]),
    width,
  );
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
  const request = { why: options.why, dryRun: options.dryRun };
  const done = await api.subjects.reset(subject, { policy: options.policy, alsoBy }, request);
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
  const { dimension, value, version, tier } = await session.api.subjects.get(parseSubject(word));
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
  const before = await api.subjects.get(subject);
  const request = { why: options.why, expected: before.version, dryRun: options.dryRun };
  const put = (dryRun: boolean | undefined): Promise<SubjectChangeBody> =>
    tier === undefined
      ? api.subjects.deleteTier(subject, { ...request, dryRun })
      : api.subjects.setTier(subject, tier, { ...request, dryRun });
  await demandNoWarnings(options, () => put(true), session);
  const harmless = before.tier === undefined || before.tier === tier || options.dryRun === true;
  const question = `${word} has tier ${before.tier}. ${tier === undefined ? "Remove it?" : `Give it tier ${tier} instead?`}`;
  if (!(await confirm({ question, yes: harmless || options.yes === true }, terminal))) return 1;
  const change = put(options.dryRun);
  const done = await change.catch((error: unknown) => {
    throw withSubjectAdvice(error, word, nowMs());
  });
  writeWarnings(done, session);
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

/** `sluice subject …` */
export function addSubjectCommands(program: Command, run: RunOnControlPlane): void {
  const subject = controlCommand(
    program,
    "subject [subject]",
    "Show which limits apply to a subject, and where each number comes from; block it; or reset its counters.",
  );
  withExamples(subject, "", "sluice subject user=u1", "sluice subject reset user=u1").action(
    (word: string | undefined, options: ControlOptions) => {
      if (word === undefined) throw new CommandError("name a subject such as user=u1: sluice subject user=u1");
      return run(options, (session) => showSubject(word, session));
    },
  );

  withExamples(
    controlCommand(subject, "list", "List subjects that have a tier, limits of their own or a block.")
      .option("--tier <name>", "only those with this tier")
      .option("--by <dimension>", "only those of this dimension; needed unless --tier"),
    "",
    "sluice subject list --tier pro",
    "sluice subject list --by tenant",
  ).action((options: SubjectListOptions) => run(options, (session) => listSubjects(options, session)));

  addSubjectBlock(subject, run);

  withExamples(
    changeCommand(
      subject,
      "reset <subject> [dimension...]",
      "Reset every counter of a subject, on every node, and lift its blocks.",
      { asks: false },
    ).option("--policy <id>", "only the counters of this policy"),
    `Resets the counters of each limit that counts by the subject, whichever endpoints its policy is for, and lists them. A limit that
counts by other dimensions as well needs their values too. Exit code 1 where nothing was reset. Tier and overrides stay.`,
    "sluice subject reset ip=203.0.113.7",
    'sluice subject reset user=u1 tenant=acme --policy orders --why "ticket 4711"',
  ).action((word: string, more: string[], options: SubjectResetOptions) =>
    run(options, (session) => resetSubject(word, more, options, session)),
  );
}

/** `sluice tier …` */
export function addTierCommands(program: Command, run: RunOnControlPlane): void {
  const tier = program.command("tier").description("Work with the tiers of subjects.");
  withExamples(
    controlCommand(tier, "list", "List the tiers that policies have windows for, or that subjects have."),
    "A tier that policies have windows for is a plan: sluice plan show NAME.",
    "sluice tier list",
  ).action((options: ControlOptions) => run(options, planList));
  withExamples(
    changeCommand(
      tier,
      "set <subject> <tier>",
      "Give a subject a tier, which policies may have other windows for.",
    ).option("--strict", "refuse a tier that changes nothing, in place of a warning"),
    "Where the subject has another one, it asks first.",
    'sluice tier set user=u1 premium --why "upgraded"',
  ).action((subject: string, name: string, options: TierOptions) =>
    run(options, (session) => tierSet(subject, name, options, session)),
  );

  withExamples(controlCommand(tier, "get <subject>", "Show a subject's tier."), "", "sluice tier get user=u1").action(
    (subject: string, options: ControlOptions) => run(options, (session) => tierGet(subject, session)),
  );

  withExamples(
    changeCommand(tier, "clear <subject>", "Remove a subject's tier."),
    "Exit code 1 if the subject has no tier.",
    "sluice tier clear user=u1",
  ).action((subject: string, options: TierOptions) =>
    run(options, (session) => tierSet(subject, undefined, options, session)),
  );
}
