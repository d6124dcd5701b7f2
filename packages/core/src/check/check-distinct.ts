import type { CounterStore } from "../counters/counter-store.ts";
import type { Problem } from "../errors.ts";
import type { Limit, PolicySet } from "../policy/policy.ts";
import { type Path, problemsError } from "../shape/reading.ts";

/** Refuses policies whose limits on distinct values these counters cannot count. */
export function checkDistinct(set: PolicySet, counters: CounterStore): void {
  if (counters.distinct === true) return;
  const name = counters.constructor.name;
  const store = name === "" || name === "Object" ? "these counters" : name;
  const findProblems = (limits: readonly Limit[], at: Path): readonly Problem[] =>
    limits.flatMap(({ distinct }, index) => {
      const message = `is ${distinct}, but ${store} cannot count distinct values; counters in memory, Valkey and Redis can`;
      return distinct === undefined ? [] : [{ path: [...at, "limits", index, "distinct"], message }];
    });
  const problems = [
    ...set.policies.flatMap(({ limits }, index) => findProblems(limits, ["policies", index])),
    ...findProblems(set.fallback?.limits ?? [], ["default"]),
  ];
  if (problems.length > 0) throw problemsError("invalid_policies", "the policies", problems);
}
