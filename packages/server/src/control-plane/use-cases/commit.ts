import type { StoreChange, StoreView } from "@sluice/sql";
import { type Problem, SluiceError } from "sluice";
import { demand } from "../../data-plane/access/access.ts";
import type { Actor } from "../../data-plane/access/actor.ts";
import type { Permission } from "../../data-plane/access/roles.ts";
import { auditEntry, type Deed } from "../audit/audit-entry.ts";
import { invalidField, invalidPolicies, tellStoreError } from "../control-errors.ts";
import type { Changed, ChangeOptions } from "../control-plane.ts";
import { composeInTurns } from "../documents/compose-policy-set.ts";
import { readStoredRows } from "../documents/stored-rows.ts";
import type { ControlContext } from "./control-context.ts";

/** What a change came to. */
export interface Outcome<T> {
  readonly value: T;
  /** False: all was as it should be, nothing was written, and there is no new generation. */
  readonly changed: boolean;
  /** One entry of the audit, or several where several things were changed. */
  readonly audit?: readonly AuditedChange[] | undefined;
  readonly warnings?: readonly Problem[] | undefined;
}

export interface AuditedChange extends Partial<Deed> {
  readonly before?: unknown;
  readonly after?: unknown;
}

export interface CommitWish extends Deed {
  readonly permission: Permission;
  /** Whether what nodes decide by is to be validated whole. */
  readonly policies: boolean;
  /** Runs before the change is begun, if the actor may. What takes long keeps no other change waiting here. */
  readonly prepare?: (() => Promise<void>) | undefined;
  /** Where a policy's own problems begin; their paths are told from there on. */
  readonly at?: Problem["path"] | undefined;
}

const maxWhyLength = 1_000;

/** Looks at what is stored, if the actor may. */
export async function look<T>(
  context: ControlContext,
  actor: Actor,
  deed: Deed,
  work: (view: StoreView) => Promise<T>,
): Promise<T> {
  return auditRefusals(context, actor, deed, async () => {
    demand(actor.caller, "read");
    return context.store.read(work);
  });
}

/**
 * Makes one change: if the actor may, if the whole that it leads to is valid, with its audit, and as a new generation. `work`
 * may be begun anew, and so does nothing but ask `change`.
 */
export async function commit<T>(
  context: ControlContext,
  actor: Actor,
  wish: CommitWish,
  options: ChangeOptions,
  work: (change: StoreChange) => Promise<Outcome<T>>,
): Promise<Changed<T>> {
  const { dryRun = false, why = "" } = options;
  return auditRefusals(
    context,
    actor,
    wish,
    async () => {
      demand(actor.caller, wish.permission);
      if (why.length > maxWhyLength) throw invalidField(["why"], `must be at most ${maxWhyLength} characters long`);
      await wish.prepare?.();
      const changed = await tolerating(wish, (tolerant) =>
        context.store.change(
          async (change) => {
            const before = tolerant ? await findProblems(context, change) : [];
            const outcome = await work(change);
            const warnings = outcome.warnings ?? [];
            if (!outcome.changed) return { value: outcome.value, generation: undefined, dryRun, warnings };
            if (wish.policies) await checkWhole(context, change, before);
            const generation = await change.nextGeneration();
            const entries = (outcome.audit ?? []).map(({ before, after, ...deed }) => {
              const details = { outcome: "done" as const, why, before, after, generation };
              return auditEntry(actor, { ...wish, ...deed }, details, context.nowMs());
            });
            await change.addAudit(entries);
            return { value: outcome.value, generation: dryRun ? undefined : generation, dryRun, warnings };
          },
          { dryRun },
        ),
      );
      if (changed.generation !== undefined) {
        tellChange(context, actor, wish, changed.generation);
        context.announce(changed.generation);
      }
      return changed;
    },
    { dryRun },
  );
}

function tellChange({ log }: ControlContext, { caller }: Actor, wish: CommitWish, generation: number): void {
  const { action, kind, target } = wish;
  // Whom requests are from may be for the audit alone.
  const what = kind === "subject" ? { action } : { action, target };
  log.info("control.changed", { caller: caller.name, ...what, generation });
}

/**
 * Runs what an actor wants, and keeps it in the audit where it is refused. What only a dry run is refused for nobody needs to
 * know later, unless they had no right to it.
 */
export async function auditRefusals<T>(
  context: ControlContext,
  actor: Actor,
  deed: Deed,
  work: () => Promise<T>,
  { dryRun = false }: { readonly dryRun?: boolean } = {},
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const error = tellStoreError(thrown);
    if (error instanceof SluiceError && error.code !== "policy_store_unavailable") {
      const isRead = deed.action.endsWith(".get") || deed.action.endsWith(".list");
      if (error.code === "permission_denied" || !(dryRun || isRead)) context.refusals.add(actor, deed, error.message);
    }
    throw error;
  }
}

/** Problems with the whole that a change leads to. Thrown within the change, so that it is undone. */
class WholeProblems extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super("the change leads to policies with problems");
    this.problems = problems;
  }
}

async function checkWhole(context: ControlContext, view: StoreView, before: readonly Problem[]): Promise<void> {
  const known = new Set(before.map(keyOf));
  const fresh = (await findProblems(context, view)).filter((problem) => !known.has(keyOf(problem)));
  if (fresh.length > 0) throw new WholeProblems(fresh);
}

async function findProblems(context: ControlContext, view: StoreView): Promise<readonly Problem[]> {
  const rows = await readStoredRows(view);
  const { reader } = context;
  const { problems } = await composeInTurns(rows, context.nowMs(), { files: context.files(), reader });
  return problems;
}

/**
 * Runs a change that leads to nothing worse than there is. Problems may be there already, because another version of Sluice wrote
 * what this one cannot read, or a policy file lacks what is referred to: they keep nobody from changing something else. They are
 * looked for where the change leads to some, within another attempt at it, so that nothing comes between.
 */
async function tolerating<T>({ at = [] }: CommitWish, run: (tolerant: boolean) => Promise<T>): Promise<T> {
  try {
    return await run(false);
  } catch (error) {
    if (!(error instanceof WholeProblems)) throw error;
  }
  try {
    return await run(true);
  } catch (error) {
    if (!(error instanceof WholeProblems)) throw error;
    throw invalidPolicies(error.problems.map((problem) => seenFrom(problem, at)));
  }
}

function keyOf({ path, message }: Problem): string {
  return JSON.stringify([path, message]);
}

/** A problem with the path from there on, if it is there. */
export function seenFrom(problem: Problem, at: Problem["path"]): Problem {
  const within = at.length > 0 && at.every((step, index) => problem.path[index] === step);
  return within ? { ...problem, path: problem.path.slice(at.length) } : problem;
}
