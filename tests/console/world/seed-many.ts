import { openPolicyStore } from "@sluice/sql";

/** Policies as a store has them that was filled over years. They are written as rows: the admin API would take minutes. */
export async function seedManyPolicies(url: string, count: number): Promise<void> {
  const store = await openPolicyStore({ url });
  const nowMs = Date.now();
  const ids = Array.from({ length: count }, (_, i) => `service-${String(i).padStart(5, "0")}`);
  const rows = ids.map((id) => {
    const document = {
      id,
      owner: `team-${id.at(-1)}`,
      match: { endpoint: `/${id}` },
      limits: [{ by: ["user"], windows: ["100/m"] }],
    };
    return {
      id,
      version: 1,
      document: JSON.stringify(document),
      owner: document.owner,
      ruleKey: undefined,
      deleted: false,
    };
  });
  try {
    await store.change(async (change) => {
      await change.putPolicy(rows.map((row) => ({ ...row, changedMs: nowMs })));
      await change.addVersion(
        rows.map(({ id, document }) => ({
          ...{
            policy: id,
            version: 1,
            document,
            deleted: false,
            author: "history",
            atMs: nowMs,
            why: "",
            revertOf: undefined,
          },
        })),
      );
      await change.nextGeneration();
    });
  } finally {
    await store.close();
  }
}

/** Subjects with a tier. */
export async function seedManySubjects(url: string, count: number): Promise<void> {
  const store = await openPolicyStore({ url });
  const nowMs = Date.now();
  const rows = Array.from({ length: count }, (_, i) => {
    const value = `customer-${String(i).padStart(6, "0")}`;
    return { dimension: "tenant", value, tier: i % 3 === 0 ? "pro" : "free", version: 1, changedMs: nowMs };
  });
  try {
    await store.change(async (change) => {
      await change.putSubject(rows);
      await change.nextGeneration();
    });
  } finally {
    await store.close();
  }
}
