import type {
  ChangeBody,
  CountedSubjectsBody,
  ImportReportBody,
  JsonObject,
  PolicyBody,
  RolloutBody,
  RolloutRequestBody,
} from "@sluice/protocol/admin";
import type { ProblemBody } from "@sluice/protocol/http";
import { printable } from "sluice";
import { renderPolicyProblem } from "../../observe/telemetry/render-policy-problem.ts";
import { CommandError, type ExitCode } from "../terminal.ts";
import { AdminRefusal } from "./admin-client.ts";
import { type ChangeFlags, nothingDone, settleChange, tellWarnings, timeoutOf } from "./change-flags.ts";
import { confirm } from "./confirm.ts";
import { withAdvice } from "./conflict-advice.ts";
import type { ControlOptions, ControlSession } from "./control-session.ts";
import { changedLines } from "./diff-lines.ts";
import { type PlannedChange, planPolicies } from "./plan-policies.ts";
import { checkTogether, type PolicyDocuments, readPolicyDocuments, renderPolicyFile } from "./read-policy-documents.ts";
import { renderPlan } from "./render-plan.ts";
import { renderPlannedRollout } from "./render-rollout.ts";
import { parseRolloutWish, type RolloutFlags } from "./rollout-wish.ts";
import { waitForRollout } from "./wait-for-rollout.ts";
import { writeJson } from "./write-json.ts";

export interface ApplyOptions extends ControlOptions, ChangeFlags, RolloutFlags {
  /** Whether policies and subjects that are not in the file are deleted. */
  readonly replace?: boolean;
}

/** So many lines of differences are shown before a person is asked; `sluice policy diff` shows all of them. */
const mostShown = 400;

/** What is to be done, and on what it rests. */
interface Plan {
  readonly documents: PolicyDocuments;
  readonly all: readonly PlannedChange[];
  readonly changes: readonly PlannedChange[];
  readonly stored: readonly PolicyBody[];
  /** The generation that all of it was read at, or one before. */
  readonly generation: number;
  readonly replace: boolean;
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
  // Whether subjects change, the control plane tells.
  const nothing = plan.changes.length === 0 && plan.documents.subjects.length === 0 && !plan.replace;
  if (nothing) {
    if (json) writeJson(session, renderJson(plan, undefined, options));
    else terminal.stdout.write(`Nothing to change: ${plan.all.length} unchanged.\n`);
    return 0;
  }
  const storedById = new Map(plan.stored.map(({ id, document }) => [id, document]));
  const own = checkTogether(plan.documents, plan.replace ? new Map() : storedById);
  const write = await chooseWay(plan, options, session);
  const tried = await write(true);
  if (!json) {
    const rollouts = tried.rollouts.map((one) => renderPlannedRollout(one, session.nowMs())).join("");
    terminal.stdout.write(renderPlan(plan.all, paint, width, mostShown) + subjectsText(plan, tried) + rollouts);
  }
  for (const problem of own) terminal.stderr.write(`warning: ${printable(renderPolicyProblem(problem))}\n`);
  // Of what is wrong with the file itself, its own places are told already.
  const more = tried.warnings.filter(({ message }) => !own.some((problem) => problem.message === message));
  tellWarnings({ warnings: more }, session);

  const changesNothing = plan.changes.length === 0 && countOf(tried.subjects) === 0;
  if (options.dryRun === true || changesNothing) {
    if (json) writeJson(session, renderJson(plan, tried, { dryRun: true }));
    else terminal.stdout.write(changesNothing ? "Nothing to change.\n" : nothingDone);
    return 0;
  }
  const question = `Apply this to ${session.api.where}?`;
  if (path === "-" && options.yes !== true)
    throw new CommandError("policies are read from stdin, so it cannot ask you there; add --yes, or --dry-run to look");
  if (!(await confirm({ question, yes: options.yes === true }, terminal))) return 1;

  const applied = await write(false);
  if (!json) terminal.stdout.write(renderApplied(applied));
  const exitCode = await settle(applied, options, session);
  if (json) writeJson(session, renderJson(plan, applied, options));
  return exitCode;
}

async function makePlan(path: string, options: ApplyOptions, { api, terminal, nowMs }: ControlSession): Promise<Plan> {
  const rollout = parseRolloutWish(options, nowMs());
  const documents = await readPolicyDocuments(path, terminal);
  if (rollout !== undefined && documents.subjects.length > 0)
    throw new CommandError("subjects cannot be rolled out by steps; apply them apart, without --rollout");
  const replace = options.replace === true;
  // What changes between the two reads shows as a generation that is not the newest any more.
  const { generation } = await api.nodes();
  const stored = await api.policies();
  const all = planPolicies(documents.policies, stored, replace);
  const changes = all.filter(({ action }) => action !== "unchanged");
  demandNoneUnderway(changes, stored);
  return { documents, all, changes, stored, generation, replace, rollout };
}

/** A policy has one new version on its way at a time. One that is deleted takes its rollout with it. */
function demandNoneUnderway(changes: readonly PlannedChange[], stored: readonly PolicyBody[]): void {
  for (const { id, rollout } of stored) {
    if (rollout === undefined) continue;
    const planned = changes.find((change) => change.id === id);
    if (planned === undefined || planned.action === "delete") continue;
    throw new CommandError(
      `version ${rollout.to_version} of ${id} is on its way to ${rollout.percent} % of subjects. End that first: sluice policy rollout ${id} --finish, or --roll-back`,
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
  if (plan.documents.subjects.length > 0 || (plan.replace && plan.rollout === undefined)) return wholesale;
  if (plan.rollout !== undefined || plan.changes.length === 1) return oneByOne;
  try {
    const tried = await wholesale(true);
    return async (dryRun) => (dryRun ? tried : wholesale(false));
  } catch (error) {
    if (error instanceof AdminRefusal && error.body.code === "permission_denied") return oneByOne;
    throw error;
  }
}

async function writeTogether(
  { documents, all, changes, generation, replace }: Plan,
  why: string | undefined,
  dryRun: boolean,
  { api }: ControlSession,
): Promise<Applied> {
  // As planned, not as written: what a document leaves out may stay as it is.
  const written = (replace ? all : changes).flatMap(({ id, document }) =>
    document === undefined ? [] : [[id, document] as const],
  );
  const file = JSON.parse(renderPolicyFile(new Map(written), "json")) as JsonObject;
  const text = JSON.stringify({
    policies: [],
    ...file,
    ...(documents.subjects.length > 0 && { subjects: documents.subjects }),
  });
  try {
    const answer = await api.import(text, { dryRun, why, expected: generation, replace });
    const { subjects } = answer.import;
    return { generation: answer.generation, warnings: answer.warnings ?? [], subjects, rollouts: [] };
  } catch (error) {
    const whole = replace ? "--replace" : documents.subjects.length > 0 ? "a file with subjects" : undefined;
    if (whole !== undefined && error instanceof AdminRefusal && error.body.code === "permission_denied")
      throw new AdminRefusal(
        `${whole} changes more than the policies of one team, and was refused; ${error.message}`,
        error.exitCode,
        error.body,
      );
    if (error instanceof AdminRefusal && error.body.code === "version_conflict")
      throw new AdminRefusal(
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
  for (const { id, document, version } of changes) {
    const wish = { dryRun, why, expected: version };
    try {
      const answer: ChangeBody & { readonly policy?: PolicyBody } =
        document === undefined
          ? await session.api.deletePolicy(id, wish)
          : await session.api.putPolicy(id, document, { ...wish, rollout });
      warnings.push(...(answer.warnings ?? []));
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

const noSubjects: Applied["subjects"] = {
  created: { count: 0, first: [] },
  changed: { count: 0, first: [] },
  deleted: { count: 0, first: [] },
};

function countOf({ created, changed, deleted }: Applied["subjects"]): number {
  return created.count + changed.count + deleted.count;
}

function subjectsText({ documents }: Plan, { subjects }: Applied): string {
  const inFile = documents.subjects.length;
  if (inFile === 0 && countOf(subjects) === 0) return "";
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
    const { exitCode } = await waitForRollout(id, timeoutOf(options), session);
    if (exitCode > worst) worst = exitCode;
  }
  return worst;
}

/** What a rollout would do. It has no id, because it does not begin. */
function plannedRollout(rollout: RolloutBody): JsonObject {
  const { policy, from_version, to_version, by, shadow, starts_ms, observe_for_ms, steps, expect_more_denials } =
    rollout;
  return { policy, from_version, to_version, by, shadow, starts_ms, observe_for_ms, steps, expect_more_denials };
}

function renderJson({ all, generation: seen }: Plan, applied: Applied | undefined, { dryRun }: ChangeFlags): unknown {
  const rollouts = applied?.rollouts ?? [];
  return {
    dry_run: dryRun === true,
    applied: dryRun !== true && applied !== undefined,
    generation: applied?.generation ?? seen,
    plan: all.map(({ id, action, version, lines }) => ({
      policy: id,
      action,
      version,
      diff: changedLines(lines),
    })),
    subjects: applied?.subjects ?? noSubjects,
    rollouts: dryRun === true ? [] : rollouts.map(({ id }) => id),
    ...(dryRun === true && { planned_rollouts: rollouts.map(plannedRollout) }),
    warnings: applied?.warnings ?? [],
  };
}
