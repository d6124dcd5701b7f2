import { openPolicyStore, type PolicyStore } from "@sluice/sql";
import { startPostgres } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ensureFirstToken } from "./control-tokens.ts";
import { admin, document, openTestControl, refusalOf } from "./testing/open-test-control.ts";

let server: Awaited<ReturnType<typeof startPostgres>>;
let stores: readonly PolicyStore[];

beforeAll(async () => {
  server = await startPostgres();
  const url = await server.createDatabase();
  stores = await Promise.all([1, 2, 3].map(() => openPolicyStore({ url })));
}, 60_000);

afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await server.close();
});

describe("control planes of several nodes on PostgreSQL", () => {
  it("let one of all editors win who saw the same version", async () => {
    const controls = await Promise.all(stores.map((store) => openTestControl({ store })));
    await controls[0]!.policies.put(admin, "orders", document("10/s"));
    for (let version = 1; version <= 5; version++) {
      const all = await Promise.allSettled(
        controls.map(({ policies }, i) =>
          policies.put(admin, "orders", document(`${100 * version + i + 1}/s`), { expected: version }),
        ),
      );
      expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      for (const one of all)
        if (one.status === "rejected")
          expect(one.reason).toMatchObject({ code: "version_conflict", currentVersion: version + 1 });
    }
    const { items } = await controls[2]!.policies.versions(admin, "orders");
    expect(items.map(({ version }) => version)).toEqual([6, 5, 4, 3, 2, 1]);
    expect((await controls[1]!.takeUp()).generation).toBe(6);
    await Promise.all(controls.map((control) => control.close()));
  });

  it("give the first token to one of them", async () => {
    const given = await Promise.all(stores.map((store) => ensureFirstToken(store)));
    expect(given.filter((one) => one !== undefined)).toHaveLength(1);
  });

  it("change nothing in a dry run, and refuse what leads to problems", async () => {
    const control = await openTestControl({ store: stores[0]! });
    await control.policies.put(admin, "carts", document("10/s", { replaces: ["orders"] }));
    const before = await control.dump();
    await control.policies.put(admin, "carts", document("20/s"), { expected: 1, dryRun: true, rollout: {} });
    await control.configuration.import(admin, "policies: []", { mode: "replace", dryRun: true });
    expect(await refusalOf(control.policies.delete(admin, "orders", { expected: 6 }))).toMatchObject({
      code: "invalid_policies",
      problems: [{ path: ["policies", "carts", "replaces", 0] }],
    });
    expect(await control.dump()).toBe(before);
    await control.close();
  });
});
