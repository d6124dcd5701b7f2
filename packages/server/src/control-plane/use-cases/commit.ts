import type { StoreChange, StoreView } from "@sluice/sql";
import { type Problem, SluiceError } from "sluice";
import { demand } from "../../data-plane/access/access.ts";
import type { Actor } from "../../data-plane/access/actor.ts";
import type { Permission } from "../../data-plane/access/roles.ts";
import { type AuditedAction, auditEntry } from "../audit/audit-entry.ts";
import { type Changed, type ChangeOptions, maxWhyLength } from "../change.ts";
import { invalidField, invalidPolicies, translateStoreError } from "../control-errors.ts";
import { composeInTurns } from "../documents/compose-policy-set.ts";
import { readStoredRows } from "../documents/stored-rows.ts";
import type { ControlContext } from "./control-context.ts";

/** The outcome of a change. */
export interface Outcome<T> {
  readonly value: T;
  /** False: nothing had to change, nothing was written, and there is no new generation. */
  readonly changed: boolean;
  /** One entry of the audit, or several if several objects changed. */
  readonly audit?: readonly AuditedChange[] | undefined;
  readonly warnings?: readonly Problem[] | undefined;
}

export interface AuditedChange extends Partial<AuditedAction> {
  readonly before?: unknown;
  readonly after?: unknown;
}

export interface CommitRequest extends AuditedAction {
  readonly permission: Permission;
  /** Whether to validate all policies together. */
  readonly policies: boolean;
  /** Runs before the change begins, if the actor is permitted. Slow work here does not hold up other changes. */
  readonly prepare?: (() => Promise<void>) | undefined;
  /** Where a policy's own problems begin; their paths are reported relative to it. */
  readonly at?: Problem["path"] | undefined;
}

/** Reads from the store, if the actor is permitted. */
export async function readStore<T>(
  context: ControlContext,
  actor: Actor,
  audited: AuditedAction,
  work: (view: StoreView) => Promise<T>,
): Promise<T> {
  return auditRefusals(context, actor, audited, async () => {
    demand(actor.caller, "read");
    return context.store.read(work);
  });
}

/**
 * Makes one change: if the actor is permitted and the resulting whole is valid, with its audit entries, and as a new
 * generation. `work` may be retried, so it must do nothing but use `change`.
 */
export async function commit<T>(
  context: ControlContext,
  actor: Actor,
  request: CommitRequest,
  options: ChangeOptions,
  work: (change: StoreChange) => Promise<Outcome<T>>,
): Promise<Changed<T>> {
  const { dryRun = false, why = "" } = options;
  return auditRefusals(
    context,
    actor,
    request,
    async () => {
      demand(actor.caller, request.permission);
      if (why.length > maxWhyLength) throw invalidField(["why"], `must be at most ${maxWhyLength} characters long`);
      await request.prepare?.();
      const changed = await tolerating(request, (tolerant) =>
        context.store.change(
          async (change) => {
            const before = tolerant ? await findProblems(context, change) : [];
            const outcome = await work(change);
            const warnings = outcome.warnings ?? [];
            if (!outcome.changed) return { value: outcome.value, generation: undefined, dryRun, warnings };
            if (request.policies) await checkTogether(context, change, before);
            const generation = await change.nextGeneration();
            const entries = (outcome.audit ?? []).map(({ before, after, ...audited }) => {
              const details = { outcome: "done" as const, why, before, after, generation };
              return auditEntry(actor, { ...request, ...audited }, details, context.nowMs());
            });
            await change.addAudit(entries);
            return { value: outcome.value, generation: dryRun ? undefined : generation, dryRun, warnings };
          },
          { dryRun },
        ),
      );
      if (changed.generation !== undefined) {
        logChange(context, actor, request, changed.generation);
        context.announce(changed.generation);
      }
      return changed;
    },
    { dryRun },
  );
}

function logChange({ log }: ControlContext, { caller }: Actor, request: CommitRequest, generation: number): void {
  const { action, kind, target } = request;
  // Subjects may be reserved for the audit.
  const what = kind === "subject" ? { action } : { action, target };
  log.info("control.changed", { caller: caller.name, ...what, generation });
}

/**
 * Runs a request of an actor, and audits it if it is refused. Refusals of a dry run are not audited, except for missing
 * permission.
 */
export async function auditRefusals<T>(
  context: ControlContext,
  actor: Actor,
  audited: AuditedAction,
  work: () => Promise<T>,
  { dryRun = false }: { readonly dryRun?: boolean } = {},
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const error = translateStoreError(thrown);
    if (error instanceof SluiceError && error.code !== "policy_store_unavailable") {
      const isRead = audited.action.endsWith(".get") || audited.action.endsWith(".list");
      if (error.code === "permission_denied" || !(dryRun || isRead))
        context.refusals.add(actor, audited, error.message);
    }
    throw error;
  }
}

/** Problems with the policies that a change would lead to. Thrown within the change, so that it is undone. */
class CombinedProblems extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super("the change leads to policies with problems");
    this.problems = problems;
  }
}

async function checkTogether(context: ControlContext, view: StoreView, before: readonly Problem[]): Promise<void> {
  const known = new Set(before.map(problemKey));
  const fresh = (await findProblems(context, view)).filter((problem) => !known.has(problemKey(problem)));
  if (fresh.length > 0) throw new CombinedProblems(fresh);
}

async function findProblems(context: ControlContext, view: StoreView): Promise<readonly Problem[]> {
  const rows = await readStoredRows(view);
  const { reader } = context;
  const { problems } = await composeInTurns(rows, context.nowMs(), { files: context.files(), reader });
  return problems;
}

/**
 * Runs a change that makes nothing worse. Problems may exist already, because another version of Sluice wrote something
 * that this one cannot read, or a policy file lacks something that is referred to: they do not prevent other changes.
 * They are searched for only if the change leads to problems, within another attempt at it, so that nothing comes in
 * between.
 */
async function tolerating<T>({ at = [] }: CommitRequest, run: (tolerant: boolean) => Promise<T>): Promise<T> {
  try {
    return await run(false);
  } catch (error) {
    if (!(error instanceof CombinedProblems)) throw error;
  }
  try {
    return await run(true);
  } catch (error) {
    if (!(error instanceof CombinedProblems)) throw error;
    throw invalidPolicies(error.problems.map((problem) => seenFrom(problem, at)));
  }
}

function problemKey({ path, message }: Problem): string {
  return JSON.stringify([path, message]);
}

/** The problem with its path relative to this place, if it is inside. */
export function seenFrom(problem: Problem, at: Problem["path"]): Problem {
  const within = at.length > 0 && at.every((step, index) => problem.path[index] === step);
  return within ? { ...problem, path: problem.path.slice(at.length) } : problem;
}
