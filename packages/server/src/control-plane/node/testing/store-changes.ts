import type { KillSwitchRecord, PolicyStore, StoreChange } from "@sluice/sql";

/** Makes one change to a store as a new generation, with its audit record. Resolves with the generation. */
export function changeStore(
  store: Pick<PolicyStore, "change">,
  work: (change: StoreChange) => Promise<void>,
  atMs: number = Date.now(),
): Promise<number> {
  return store.change(async (change) => {
    await work(change);
    const generation = await change.nextGeneration();
    await change.addAudit({
      id: `${String(generation).padStart(12, "0")}`,
      atMs,
      actor: "test",
      role: "admin",
      from: "",
      action: "policy.put",
      kind: "policy",
      target: "p",
      outcome: "done",
      why: "",
      before: undefined,
      after: undefined,
      generation,
    });
    return generation;
  });
}

/** Stores a policy that allows each user `limit` requests an hour. */
export function putPolicy(store: Pick<PolicyStore, "change">, id: string, limit: number): Promise<number> {
  return changeStore(store, async (change) => {
    const before = await change.policy(id);
    const version = (before?.version ?? 0) + 1;
    const document = JSON.stringify({
      id,
      limits: [{ by: ["user"], algorithm: "fixed_window", windows: [`${limit}/h`] }],
      on_failure: "open",
    });
    const changedMs = Date.now();
    const owner = undefined;
    await change.putPolicy({ id, version, document, owner, ruleKey: undefined, deleted: false, changedMs });
    await change.addVersion({
      policy: id,
      version,
      document,
      deleted: false,
      author: "test",
      atMs: changedMs,
      why: "",
      revertOf: undefined,
    });
  });
}

export function putKillSwitch(
  store: Pick<PolicyStore, "change">,
  record: Pick<KillSwitchRecord, "mode" | "sinceMs" | "untilMs"> | undefined,
): Promise<number> {
  return changeStore(store, (change) =>
    change.putKillSwitch(record === undefined ? undefined : { ...record, reason: "test", author: "test" }),
  );
}
