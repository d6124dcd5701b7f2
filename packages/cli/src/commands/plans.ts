import { readFile } from "node:fs/promises";
import { text as readAll } from "node:stream/consumers";
import type { PlanBody, PlanChangeBody, PlanSummaryBody } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { printable } from "sluice/internal";
import { parsePlanFile, renderPlanFile, type WrittenPlanLimit } from "../arguments/parse-plan-file.ts";
import { type ChangeFlags, nothingDone, settleChange, writeWarnings } from "../control/change-flags.ts";
import { changeCommand, controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { RefusedRequest } from "../control/refused-request.ts";
import { confirm } from "../terminal/confirm.ts";
import { splitDiff } from "../terminal/diff-lines.ts";
import { editText } from "../terminal/edit-text.ts";
import { renderFields, renderTable } from "../terminal/render-table.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";
import { renderDiff } from "./render-plan.ts";

/** `sluice plan list`, and `sluice tier list`: the same plans. */
export async function planList(session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, width } = session;
  const plans = await api.plans.list().toArray();
  if (json) writeJson(session, { plans });
  else terminal.stdout.write(renderPlans(plans, width));
  return 0;
}

export function renderPlans(plans: readonly PlanSummaryBody[], width: number | undefined): string {
  if (plans.length === 0) return "No policy has windows for a plan. sluice plan set NAME POLICY WINDOW makes one.\n";
  return renderTable(
    [
      { title: "plan", flexible: true },
      { title: "policies", align: "right" },
      { title: "limits", align: "right" },
      { title: "subjects", align: "right" },
    ],
    plans.map(({ plan, policies, limits, subjects }) => [plan, String(policies), String(limits), String(subjects)]),
    width,
  );
}

export interface PlanShowOptions extends ControlOptions {
  readonly output?: string;
}

/** `sluice plan show` */
export async function planShow(name: string, options: PlanShowOptions, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, width } = session;
  const { output = "text" } = options;
  if (output !== "text" && output !== "yaml")
    throw new CommandError(`-o is ${JSON.stringify(output)}; it should be text or yaml`);
  const plan = await api.plans.get(name);
  if (json) writeJson(session, plan);
  else terminal.stdout.write(output === "yaml" ? renderPlanFile(name, plan.limits) : renderPlan(plan, width));
  return 0;
}

export function renderPlan(plan: PlanBody, width: number | undefined): string {
  const counted = plan.subjects.map(({ dimension, count }) => `${count} by ${dimension}`).join(", ");
  const head = renderFields([
    ["plan", plan.plan],
    ["subjects", counted === "" ? "none" : counted],
  ]);
  const rows = [
    ...plan.limits.map(({ policy, limit, windows }) => [`${policy} / ${limit}`, renderWindows(windows), ""]),
    ...plan.in_files.map(({ policy, limit, windows }) => [
      `${policy} / ${limit}`,
      renderWindows(windows),
      "policy file",
    ]),
    ...plan.without.map(({ policy, limit, windows }) => [
      `${policy} / ${limit}`,
      windows === undefined ? "no limit" : renderWindows(windows),
      "not in this plan",
    ]),
  ];
  const columns = [{ title: "limit", flexible: true }, { title: "windows" }, { title: "" }];
  return `${head}\n${renderTable(columns, rows, width)}`;
}

function renderWindows(windows: readonly unknown[]): string {
  return windows.map((window) => (typeof window === "string" ? window : JSON.stringify(window))).join(", ");
}

export interface PlanSetOptions extends ControlOptions, ChangeFlags {
  readonly limit?: string;
  readonly remove?: boolean;
}

/** `sluice plan set`: the windows of one limit. */
export async function planSet(
  name: string,
  policy: string,
  windows: readonly string[],
  options: PlanSetOptions,
  session: ControlSession,
): Promise<ExitCode> {
  if (options.remove === true ? windows.length > 0 : windows.length === 0)
    throw new CommandError(
      options.remove === true
        ? "--remove takes no windows"
        : 'name a window such as "100/s burst 200", or use --remove',
    );
  const before = await findPlan(name, session);
  const limit = options.limit ?? (await findOnlyLimit(policy, before, session));
  const others = before.limits.filter((one) => one.policy !== policy || one.limit !== limit);
  if (options.remove === true && others.length === before.limits.length)
    throw new CommandError(`plan ${name} has no windows for ${policy} / ${limit}`, 1);
  const own = options.remove === true ? [] : [{ policy, limit, windows }];
  return changePlan(before, [...others, ...own], options, session);
}

/** The name of the only limit of a policy. Where it is in the plan already, no policy needs to be read. */
async function findOnlyLimit(policy: string, { limits, without }: PlanBody, { api }: ControlSession): Promise<string> {
  const known = [...limits, ...without].filter((one) => one.policy === policy);
  const { document } = await api.policies.get(policy);
  const count = Array.isArray(document.limits) ? document.limits.length : 0;
  const [first] = known;
  if (count !== 1) throw new CommandError(`policy ${policy} has ${count} limits; name one with --limit`);
  if (first !== undefined) return first.limit;
  const [limit] = document.limits as readonly [{ readonly name?: string; readonly by?: string | readonly string[] }];
  const by = typeof limit.by === "string" ? [limit.by] : (limit.by ?? []);
  return limit.name ?? (by.join(",") || "global");
}

export interface PlanEditOptions extends ControlOptions, ChangeFlags {
  readonly file?: string;
}

/** `sluice plan edit`: the whole plan, in an editor or from a file. */
export async function planEdit(name: string, options: PlanEditOptions, session: ControlSession): Promise<ExitCode> {
  const before = await findPlan(name, session);
  const text = renderPlanFile(name, before.limits);
  const edited =
    options.file === undefined
      ? await editText(text, "plan.yaml", session.editor)
      : await readPlanText(options.file, session);
  const limits = parsePlanFile(name, edited, options.file ?? "plan.yaml");
  return changePlan(before, limits, options, session);
}

function readPlanText(file: string, { terminal }: ControlSession): Promise<string> {
  if (file !== "-") return readFile(file, "utf8").catch((error: Error) => Promise.reject(unreadable(file, error)));
  if (terminal.stdin === undefined) throw new CommandError("there is no stdin to read");
  return readAll(terminal.stdin);
}

function unreadable(file: string, error: Error): CommandError {
  return new CommandError(`${file} cannot be read: ${error.message}`);
}

/** `sluice plan delete` */
export async function planDelete(
  name: string,
  options: ControlOptions & ChangeFlags,
  session: ControlSession,
): Promise<ExitCode> {
  return changePlan(await session.api.plans.get(name), undefined, options, session);
}

/** A plan, even if nothing knows it yet. */
async function findPlan(name: string, { api }: ControlSession): Promise<PlanBody> {
  try {
    return await api.plans.get(name);
  } catch (error) {
    if (!(error instanceof RefusedRequest) || error.body.code !== "resource_not_found") throw error;
    return { plan: name, version: 0, limits: [], without: [], in_files: [], subjects: [] };
  }
}

/** Shows what would change, asks, and does it, if nothing changed in between. `limits` undefined: deletes it. */
async function changePlan(
  before: PlanBody,
  limits: readonly WrittenPlanLimit[] | undefined,
  options: ControlOptions & ChangeFlags,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json } = session;
  const name = before.plan;
  const write = (dryRun: boolean): Promise<PlanChangeBody> => {
    const change = { why: options.why, expected: before.version, dryRun };
    const done = limits === undefined ? api.plans.delete(name, change) : api.plans.put(name, limits, change);
    return done.catch((error: unknown) => Promise.reject(withPlanAdvice(error, name)));
  };
  const tried = await write(true);
  if (!json) terminal.stdout.write(renderPlanChange(tried, session));
  writeWarnings(tried, session);
  if (options.dryRun === true || tried.policies.length === 0) {
    if (json) writeJson(session, tried);
    else if (tried.policies.length > 0) terminal.stdout.write(nothingDone);
    return 0;
  }
  const verb = limits === undefined ? "Delete" : "Change";
  const count = tried.policies.length === 1 ? "1 policy" : `${tried.policies.length} policies`;
  const question = `${verb} plan ${name}, in ${count}?`;
  if (!(await confirm({ question, yes: options.yes === true }, terminal))) return 1;
  const done = await write(false);
  if (!json) terminal.stdout.write(`Done, as generation ${done.generation}.\n`);
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return exitCode;
}

function renderPlanChange({ plan, policies }: PlanChangeBody, { paint }: ControlSession): string {
  if (policies.length === 0) return `Plan ${printable(plan.plan)} says the same already: nothing was changed.\n`;
  return policies
    .map(({ policy, version, diff }) => {
      const head = `${paint.strong(printable(policy))}, version ${version}\n`;
      return diff === undefined ? head : `${head}${renderDiff(splitDiff(diff), paint)}`;
    })
    .join("");
}

function withPlanAdvice(error: unknown, name: string): unknown {
  if (!(error instanceof RefusedRequest) || error.body.code !== "version_conflict") return error;
  const message = `plan ${printable(name)} was changed by another command meanwhile, and nothing was done. See what it says now: sluice plan show ${printable(name)}; then do it again.`;
  return new RefusedRequest(message, error.exitCode, error.body);
}

/** `sluice plan …` */
export function addPlanCommands(program: Command, run: RunOnControlPlane): void {
  const plan = program
    .command("plan")
    .description("Work with plans: what a tier means in every policy, changed in one place.");
  withExamples(
    controlCommand(plan, "list", "List plans, with how many policies and subjects have them."),
    "",
    "sluice plan list",
  ).action((options: ControlOptions) => run(options, planList));

  withExamples(
    controlCommand(plan, "show <plan>", "Show a plan: its windows in every policy.").option(
      "-o, --output <form>",
      "text, or yaml as in a policy file",
      "text",
    ),
    "Also lists limits that have windows for other plans, and none for this one.",
    "sluice plan show pro",
    "sluice plan show pro -o yaml > pro.yaml",
  ).action((name: string, options: PlanShowOptions) => run(options, (session) => planShow(name, options, session)));

  withExamples(
    changeCommand(plan, "set <plan> <policy> [window...]", "Set the windows of one limit for a plan.")
      .option("--limit <name>", "the limit: its name, else its dimensions with commas (default: the only one)")
      .option("--remove", "delete its windows; subjects of the plan have what holds for everyone"),
    "Shows what would change in the policy, and asks.",
    'sluice plan set pro orders "100/s burst 200" 50k/d --why "new price list"',
    "sluice plan set pro orders --limit tenant,user --remove",
  ).action((name: string, policy: string, windows: string[], options: PlanSetOptions) =>
    run(options, (session) => planSet(name, policy, windows, options, session)),
  );

  withExamples(
    changeCommand(plan, "edit <plan>", "Edit a whole plan, in every policy at once.").option(
      "--file <path>",
      "read it from here, - for stdin, instead of opening VISUAL or EDITOR",
    ),
    `All policies change together, in one generation, or none does. Refuses to overwrite what another command changed in
between.`,
    "sluice plan edit pro",
    "sluice plan show pro -o yaml | sed s,100/s,200/s, | sluice plan edit pro --file - --yes",
  ).action((name: string, options: PlanEditOptions) => run(options, (session) => planEdit(name, options, session)));

  withExamples(
    changeCommand(plan, "delete <plan>", "Delete a plan's windows from every policy. Subjects keep the tier."),
    "",
    "sluice plan delete trial",
  ).action((name: string, options: ControlOptions & ChangeFlags) =>
    run(options, (session) => planDelete(name, options, session)),
  );
}
