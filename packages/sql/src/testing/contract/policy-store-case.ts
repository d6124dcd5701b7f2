import type { PolicyStore, StoreView } from "../../policy-store.ts";

/** A store to test, in which nothing was ever written. */
export interface PolicyStoreUnderTest {
  readonly store: PolicyStore;
  /** Opens the same data once more, as another node does. Absent if only one node can open it. */
  readonly openAnother?: (() => Promise<PolicyStore>) | undefined;
}

/** One promise of `PolicyStore`. Runs under any test runner: it throws when the promise is broken. */
export interface PolicyStoreCase {
  readonly name: string;
  run(under: PolicyStoreUnderTest): Promise<void>;
}

/** Everything that a store holds. */
export async function readEverything(view: StoreView): Promise<object> {
  const policies = await view.policies();
  const versions = await Promise.all(policies.map(({ id }) => view.versions(id)));
  const rollouts = await view.rollouts();
  return {
    pulse: await view.pulse(),
    policies,
    versions,
    rollouts,
    tallies: await Promise.all(rollouts.map(({ id }) => view.tallies(id))),
    subjects: await view.subjects(),
    subjectLimits: await view.subjectLimits(),
    disabled: await view.disabled(),
    blocks: await view.blocks(),
    tokens: await view.tokens(),
    audit: await view.audit(),
    nodes: await view.nodes(),
  };
}

export function ids(records: readonly { readonly id: string }[]): readonly string[] {
  return records.map(({ id }) => id);
}
