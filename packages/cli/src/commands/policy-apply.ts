import type {
  ChangeBody,
  CountedSubjectsBody,
  ImportReportBody,
  JsonObject,
  PlannedPolicyBody,
  PolicyBody,
  RolloutBody,
  RolloutRequestBody,
} from "@sluice/protocol/admin";
import type { ProblemBody } from "@sluice/protocol/http";
import type { Command } from "commander";
import { printable } from "sluice/internal";
import { parseRollout, type RolloutFlags } from "../arguments/parse-rollout.ts";
import { askPlan, type PlannedFiles } from "../control/ask-plan.ts";
import { type ChangeFlags, nothingDone, readTimeout, settleChange, writeWarnings } from "../control/change-flags.ts";
import { withAdvice } from "../control/conflict-advice.ts";
import { changeCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { RefusedRequest } from "../control/refused-request.ts";
import { renderProblemBody } from "../control/render-problem-body.ts";
import { renderPlannedRollout } from "../control/render-rollout.ts";
import { forNodesOrRollout, withRolloutOptions } from "../control/rollout-options.ts";
import { waitForRollout } from "../control/wait-for-rollout.ts";
import { confirm } from "../terminal/confirm.ts";
import { changedLines, splitDiff } from "../terminal/diff-lines.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";
import { renderPlan } from "./render-plan.ts";

export interface ApplyOptions extends ControlOptions, ChangeFlags, RolloutFlags {
  /** Whether policies and subjects that are not in the file are deleted. */
  readonly replace?: boolean;
}

/** So many lines of differences are shown before a person is asked; `sluice policy diff` shows all of them. */
const mostShown = 400;

/** What is to be done, and on what it rests. */
interface Plan extends PlannedFiles {
  readonly changes: readonly PlannedPolicyBody[];
  readonly rollout: RolloutRequestBody | undefined;
}

/** What came of it, or would. */
interface Applied {
  readonly generation: number | undefined;
  readonly warnings: readonly ProblemBody[];
  readonly subjects: ImportReportBody["subjects"];
  /** Rollouts that began, or would. */
  readonly rollouts: readonly RolloutBody[];
}

/** `sluice policy apply`: makes the policy store hold what a policy file says. */
export async function policyApply(path: string, options: ApplyOptions, session: ControlSession): Promise<ExitCode> {
  const { terminal, json, paint, width } = session;
  const plan = await makePlan(path, options, session);
  const { policies, subjects_in_files: inFiles, warnings } = plan.plan;
  if (plan.changes.length === 0 && inFiles === 0 && plan.mode === "merge") {
    if (json) writeJson(session, renderJson(plan, undefined, options));
    else terminal.stdout.write(`Nothing to change: ${policies.length} unchanged.\n`);
    return 0;
  }
  const write = await chooseWay(plan, options, session);
  const tried = await write(true);
  if (!json) {
    const rollouts = tried.rollouts.map((one) => renderPlannedRollout(one, session.nowMs())).join("");
    terminal.stdout.write(renderPlan(policies, paint, width, mostShown) + renderSubjects(plan, tried) + rollouts);
  }
  for (const problem of warnings) terminal.stderr.write(`warning: ${printable(renderProblemBody(problem))}\n`);
  // What may surprise in the files is reported with its place already.
  const more = tried.warnings.filter(({ message }) => !warnings.some((problem) => problem.message === message));
  writeWarnings({ warnings: more }, session);

  const changesNothing = plan.changes.length === 0 && countSubjects(tried.subjects) === 0;
  if (options.dryRun === true || changesNothing) {
    if (json) writeJson(session, renderJson(plan, tried, { dryRun: true }));
    else terminal.stdout.write(changesNothing ? "Nothing to change.\n" : nothingDone);
    return 0;
  }
  const question = `Apply this to ${session.api.server}?`;
  if (path === "-" && options.yes !== true)
    throw new CommandError("policies are read from stdin, so it cannot ask you there; add --yes, or --dry-run to look");
  if (!(await confirm({ question, yes: options.yes === true }, terminal))) return 1;

  const applied = await write(false);
  if (!json) terminal.stdout.write(renderApplied(applied));
  const exitCode = await settle(applied, options, session);
  if (json) writeJson(session, renderJson(plan, applied, options));
  return exitCode;
}

async function makePlan(path: string, options: ApplyOptions, session: ControlSession): Promise<Plan> {
  const rollout = parseRollout(options, session.nowMs());
  const planned = await askPlan(path, options.replace === true ? "replace" : "merge", session);
  if (rollout !== undefined && planned.plan.subjects_in_files > 0)
    throw new CommandError("subjects cannot be rolled out by steps; apply them apart, without --rollout");
  const changes = planned.plan.policies.filter(({ action }) => action !== "unchanged");
  demandNoneUnderway(changes);
  return { ...planned, changes, rollout };
}

/** A policy has one new version on its way at a time. One that is deleted takes its rollout with it. */
function demandNoneUnderway(changes: readonly PlannedPolicyBody[]): void {
  for (const { policy, action, rollout } of changes) {
    if (rollout === undefined || action === "delete") continue;
    throw new CommandError(
      `version ${rollout.to_version} of ${policy} is on its way to ${rollout.percent} % of subjects. End that first: sluice policy rollout ${policy} --finish, or --roll-back`,
      4,
    );
  }
}

type Write = (dryRun: boolean) => Promise<Applied>;

/**
 * Several policies change together, in one generation, or not at all. One alone, and such as go out by steps, are changed by
 * themselves; and so is each for editors, who may change policies of their team but not the configuration as a whole.
 */
async function chooseWay(plan: Plan, options: ApplyOptions, session: ControlSession): Promise<Write> {
  const oneByOne: Write = (dryRun) => writeOneByOne(plan, options.why, dryRun, session);
  const wholesale: Write = (dryRun) => writeTogether(plan, options.why, dryRun, session);
  if (plan.plan.subjects_in_files > 0 || (plan.mode === "replace" && plan.rollout === undefined)) return wholesale;
  if (plan.rollout !== undefined || plan.changes.length === 1) return oneByOne;
  try {
    const tried = await wholesale(true);
    return async (dryRun) => (dryRun ? tried : wholesale(false));
  } catch (error) {
    if (error instanceof RefusedRequest && error.body.code === "permission_denied") return oneByOne;
    throw error;
  }
}

async function writeTogether(
  { files, mode, plan }: Plan,
  why: string | undefined,
  dryRun: boolean,
  { api }: ControlSession,
): Promise<Applied> {
  try {
    const expected = plan.generation;
    const answer = await api.configuration.import(files, { dryRun, why, expected, mode });
    const { subjects } = answer.import;
    return { generation: answer.generation, warnings: answer.warnings, subjects, rollouts: [] };
  } catch (error) {
    if (!(error instanceof RefusedRequest)) throw error;
    const whole = mode === "replace" ? "--replace" : plan.subjects_in_files > 0 ? "a file with subjects" : undefined;
    if (whole !== undefined && error.body.code === "permission_denied")
      throw new RefusedRequest(
        `${whole} changes more than the policies of one team, and was refused; ${error.message}`,
        error.exitCode,
        error.body,
      );
    if (error.body.code === "version_conflict")
      throw new RefusedRequest(
        "another command changed the policy store meanwhile, and nothing was overwritten. Run the command again to see what would change now; sluice audit --since 5m shows who it was.",
        error.exitCode,
        error.body,
      );
    throw error;
  }
}

async function writeOneByOne(
  { changes, rollout }: Plan,
  why: string | undefined,
  dryRun: boolean,
  session: ControlSession,
): Promise<Applied> {
  const done: string[] = [];
  const warnings: ProblemBody[] = [];
  const rollouts: RolloutBody[] = [];
  let generation: number | undefined;
  for (const { policy: id, action, document, version } of changes) {
    const change = { dryRun, why, expected: version };
    try {
      const answer: ChangeBody & { readonly policy?: PolicyBody } =
        action === "delete"
          ? await session.api.policies.delete(id, change)
          : await session.api.policies.put(id, demandDocument(document), { ...change, rollout });
      warnings.push(...answer.warnings);
      generation = answer.generation ?? generation;
      const begun = answer.policy?.rollout;
      if (begun !== undefined) rollouts.push(begun);
      done.push(id);
    } catch (error) {
      if (!dryRun && done.length > 0)
        session.terminal.stderr.write(
          `${done.length} of ${changes.length} were applied (${printable(done.join(", "))}), then:\n`,
        );
      throw withAdvice(error, id, version);
    }
  }
  return { generation, warnings, subjects: noSubjects, rollouts };
}

/** A plan has the documents of the first 2 MB of changes. */
function demandDocument(document: JsonObject | undefined): JsonObject {
  if (document !== undefined) return document;
  throw new CommandError("this file changes too much to be applied policy by policy; split it into several files");
}

const noSubjects: Applied["subjects"] = {
  created: { count: 0, first: [] },
  changed: { count: 0, first: [] },
  deleted: { count: 0, first: [] },
};

function countSubjects({ created, changed, deleted }: Applied["subjects"]): number {
  return created.count + changed.count + deleted.count;
}

function renderSubjects({ plan }: Plan, { subjects }: Applied): string {
  const inFile = plan.subjects_in_files;
  if (inFile === 0 && countSubjects(subjects) === 0) return "";
  const { created, changed, deleted } = subjects;
  const lines = [
    ...subjectLines("+", created),
    ...subjectLines("~", changed),
    ...subjectLines("-", deleted),
    `${inFile} ${inFile === 1 ? "subject" : "subjects"} in the file: ${created.count} to create, ${changed.count} to change, ${deleted.count} to delete`,
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function subjectLines(sign: string, { count, first }: CountedSubjectsBody): readonly string[] {
  const lines = first.map(({ dimension, value }) => `${sign}  ${printable(`${dimension}=${value}`)}`);
  return count > first.length ? [...lines, `${sign}  … and ${count - first.length} more`] : lines;
}

function renderApplied({ generation, rollouts }: Applied): string {
  const begun = rollouts.map(
    ({ id, state }) =>
      `Rollout ${id} ${state === "waiting" ? "waits for its start" : "begins"}; follow it with: sluice policy rollout ${id} --wait\n`,
  );
  return `Applied${generation === undefined ? "" : `, as generation ${generation}`}.\n${begun.join("")}`;
}

async function settle(applied: Applied, options: ApplyOptions, session: ControlSession): Promise<ExitCode> {
  if (options.wait !== true) return 0;
  if (applied.rollouts.length === 0) return settleChange(applied, options, session);
  let worst: ExitCode = 0;
  for (const { id } of applied.rollouts) {
    const { exitCode } = await waitForRollout(id, readTimeout(options), session);
    if (exitCode > worst) worst = exitCode;
  }
  return worst;
}

/** What a rollout would do. It has no id, because it does not begin. */
function renderRolloutPlan(rollout: RolloutBody): JsonObject {
  const { policy, from_version, to_version, by, shadow, starts_ms, observe_for_ms, steps, expect_more_denials } =
    rollout;
  return { policy, from_version, to_version, by, shadow, starts_ms, observe_for_ms, steps, expect_more_denials };
}

function renderJson({ plan }: Plan, applied: Applied | undefined, { dryRun }: ChangeFlags): unknown {
  const rollouts = applied?.rollouts ?? [];
  return {
    dry_run: dryRun === true,
    applied: dryRun !== true && applied !== undefined,
    generation: applied?.generation ?? plan.generation,
    plan: plan.policies.map(({ policy, action, version, diff }) => ({
      policy,
      action,
      version,
      diff: changedLines(splitDiff(diff)),
    })),
    subjects: applied?.subjects ?? noSubjects,
    rollouts: dryRun === true ? [] : rollouts.map(({ id }) => id),
    ...(dryRun === true && { planned_rollouts: rollouts.map(renderRolloutPlan) }),
    warnings: applied?.warnings ?? [],
  };
}

/** `sluice policy apply` */
export function addPolicyApply(policy: Command, run: RunOnControlPlane): void {
  const apply = changeCommand(policy, "apply <path>", "Make the policy store hold what a policy file says.", {
    waiting: forNodesOrRollout,
  }).option("--replace", "delete policies and subjects that are not in the file");
  withExamples(
    withRolloutOptions(apply),
    `PATH is a policy file, a folder of them, or - for stdin. Shows what would change, asks, and refuses to overwrite
what another command changed in between. Policies that the file does not name stay, unless --replace.
Several policies change together or not at all; with --rollout, and for editors, one by one.`,
    "sluice policy apply policies.yaml",
    "sluice policy apply policies.yaml --replace --dry-run",
    'sluice policy apply login.yaml --rollout "1%:10m,10%:10m,100%" --why "fewer guesses" --yes --wait',
  ).action((path: string, options: ApplyOptions) => run(options, (session) => policyApply(path, options, session)));
}
