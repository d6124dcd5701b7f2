import { describeNotLeased } from "../leases/describe-not-leased.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import { compileLimits, compileWindows } from "../match/compile-limit.ts";
import type { Policy, SubjectEntry } from "../policy/policy.ts";
import { renderShare } from "../policy/share-shape.ts";

export interface CountersWarning {
  readonly key: "counters" | "max_overshoot" | "on_failure";
  readonly message: string;
}

/** How many limits are named at most. */
const maxNamed = 4;

/** Warns about counter settings that have no effect. */
export function lintCounters(policy: Policy, subjects: readonly SubjectEntry[]): readonly CountersWarning[] {
  const { counters } = policy;
  if (counters === "exact" || counters === "strong") return [...lintOvershoot(policy), ...lintFailure(policy)];
  if (counters !== "leased") return [];
  if (policy.limits.length === 0) return [{ key: "counters", message: "is leased, but the policy has no limits" }];
  const reasons = compileLimits(policy).map((limit) => whyNever(limit, subjects));
  if (reasons.includes(undefined)) return [];
  const named = reasons.slice(0, maxNamed).map((reason, index) => `limits[${index}] ${reason}`);
  const more = reasons.length > maxNamed ? ` (and ${reasons.length - maxNamed} more)` : "";
  return [
    {
      key: "counters",
      message: `is leased, but comes to exact, because no limit of the policy can be leased: ${named.join("; ")}${more}`,
    },
  ];
}

function lintOvershoot({ counters, maxOvershoot }: Policy): readonly CountersWarning[] {
  if (maxOvershoot === 0) return [];
  const message = `is ${renderShare(maxOvershoot)}, and has no effect: counters is ${counters}, and exceeds nothing`;
  return [{ key: "max_overshoot", message }];
}

/** A choice that was not made is reported for every policy. */
function lintFailure({ counters, onFailure, onFailureChosen }: Policy): readonly CountersWarning[] {
  if (counters !== "strong" || onFailure === "closed" || !onFailureChosen) return [];
  const message = `is ${onFailure}, so what passes while the database of strong counters is unavailable is not counted there; write closed if nothing may be missed`;
  return [{ key: "on_failure", message }];
}

/** Why a limit is never leased, for any tier or override; undefined if it may be. */
function whyNever(limit: CompiledLimit, subjects: readonly SubjectEntry[]): string | undefined {
  const others = [...limit.tiers.values(), ...ownWindows(limit, subjects)];
  return others.some((windows) => describeNotLeased({ limit, windows }) === undefined)
    ? undefined
    : describeNotLeased({ limit, windows: limit.windows });
}

function ownWindows(limit: CompiledLimit, subjects: readonly SubjectEntry[]): readonly (readonly CompiledWindow[])[] {
  const { policy, source, scope, identity } = limit;
  return subjects
    .filter(({ dimension }) => source.by.includes(dimension))
    .flatMap((subject) => subject.limits)
    .filter((own) => own.policy === policy.id && (own.limit === undefined || own.limit === scope))
    .map(({ windows }) => compileWindows(identity, source, windows));
}
