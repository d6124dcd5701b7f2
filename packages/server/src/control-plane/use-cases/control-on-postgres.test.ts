import { keptSubject } from "@sluice/protocol/admin";
import { openPolicyStore, type PolicyStore } from "@sluice/sql";
import { createFaultyProxy, startPostgres } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { admin, catchRefusal, document, openTestControl, type TestControl } from "../testing/open-test-control.ts";
import { ensureFirstToken } from "./control-tokens.ts";

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
  it("let one of all editors win that saw the same version", async () => {
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
    expect((await controls[1]!.applyStored()).generation).toBe(6);
    await Promise.all(controls.map((control) => control.close()));
  });

  it("give the first token to one of them", async () => {
    const given = await Promise.all(stores.map((store) => ensureFirstToken(store)));
    expect(given.filter((one) => one !== undefined)).toHaveLength(1);
  });

  it("change nothing in a dry run, and refuse changes that lead to problems", async () => {
    const control = await openTestControl({ store: stores[0]! });
    await control.policies.put(admin, "carts", document("10/s", { replaces: ["orders"] }));
    const before = await control.dump();
    await control.policies.put(admin, "carts", document("20/s"), { expected: 1, dryRun: true, rollout: {} });
    await control.configuration.import(admin, "policies: []", { mode: "replace", dryRun: true });
    expect(await catchRefusal(control.policies.delete(admin, "orders", { expected: 6 }))).toMatchObject({
      code: "invalid_policies",
      problems: [{ path: ["policies", "carts", "replaces", 0] }],
    });
    expect(await control.dump()).toBe(before);
    await control.close();
  });

  it("report a change whose answer was lost as unknown, and do not make it twice", async () => {
    const url = await server.createDatabase();
    const proxy = await createFaultyProxy({ host: "127.0.0.1", port: server.port });
    const store = await openPolicyStore({ url: url.replace(`:${server.port}/`, `:${proxy.port}/`) });
    let lose = false;
    const losing: PolicyStore = {
      ...store,
      change: (work, options) =>
        store.change(async (change) => {
          const result = await work(change);
          if (lose) proxy.dropRepliesOnce();
          lose = false;
          return result;
        }, options),
    };
    const control = await openTestControl({ store: losing });
    await control.policies.put(admin, "orders", document("10/s"));
    lose = true;
    const put = () => control.policies.put(admin, "orders", document("20/s"), { expected: 1 });
    const lost = await catchRefusal(put());
    expect(lost).toMatchObject({ code: "policy_store_unavailable" });
    expect(lost.message).toContain("may or may not have been done");
    expect(await catchRefusal(put())).toMatchObject({ code: "version_conflict", currentVersion: 2 });
    const { items } = await control.audit.list(admin, { target: "orders", outcome: "done" });
    expect(items).toHaveLength(2);
    await control.close();
    await store.close();
    await proxy.close();
  });

  it("let one of two actors win that change the same subject, import, revert or delete what they saw", async () => {
    const [one, two] = await Promise.all([stores[0], stores[1]].map((store) => openTestControl({ store: store! })));
    const both = async (work: (control: TestControl) => Promise<unknown>): Promise<readonly unknown[]> => {
      const all = await Promise.allSettled([one!, two!].map(work));
      return all.map((each) => (each.status === "fulfilled" ? "done" : each.reason.code)).toSorted();
    };
    const winner = ["done", "version_conflict"];
    const { version } = (await one!.policies.put(admin, "raced", document("1/s"))).value;
    const { value: subject } = await one!.subjects.setTier(admin, "user", "raced", "gold");
    const expected = subject.version;
    expect(
      await both(({ subjects }) =>
        subjects.setLimit(admin, "user", "raced", { policy: "raced", windows: ["5/s"] }, { expected }),
      ),
    ).toEqual(winner);
    const { generation } = await stores[0]!.readPulse();
    const file = (windows: string) => JSON.stringify({ policies: [{ id: "raced", ...document(windows) }] });
    expect(
      await both((control) =>
        control.configuration.import(admin, file(control === one ? "6/s" : "7/s"), { expected: generation }),
      ),
    ).toEqual(winner);
    const changed = version + 1;
    expect(await both(({ policies }) => policies.revert(admin, "raced", version, { expected: changed }))).toEqual(
      winner,
    );
    const { value: known } = await one!.subjects.setTier(admin, "user", "raced", "silver", { expected: "any" });
    expect(await both(({ subjects }) => subjects.delete(admin, "user", "raced", { expected: known.version }))).toEqual(
      winner,
    );
    expect(await both(({ policies }) => policies.delete(admin, "raced", { expected: changed + 1 }))).toEqual([
      "done",
      "resource_not_found",
    ]);
    await Promise.all([one!.close(), two!.close()]);
  });

  it("let one of several actors win that change a subject unseen, and show the others its current state", async () => {
    const controls = await Promise.all(stores.map((store) => openTestControl({ store })));
    const [{ policies, subjects, clock }] = controls as [TestControl];
    await policies.put(admin, "hurried", document("1/s"));
    const untilMs = clock.epochMs() + 60_000;
    type Set = (control: TestControl, subject: string, i: number) => Promise<unknown>;
    const deeds: readonly (readonly [string, Set])[] = [
      ["tier", ({ subjects }, subject, i) => subjects.setTier(admin, "user", subject, `tier-${i}`)],
      [
        "custom",
        ({ subjects }, subject, i) =>
          subjects.setLimit(admin, "user", subject, { policy: "hurried", windows: [`${i + 2}/s`] }),
      ],
      [
        "override",
        ({ subjects }, subject, i) =>
          subjects.setLimit(admin, "user", subject, { policy: "hurried", windows: [`${i + 2}/s`], untilMs }),
      ],
    ];
    for (const [name, set] of deeds) {
      for (let round = 0; round < 5; round++) {
        const subject = `${name}-${round}`;
        const all = await Promise.allSettled(controls.map((control, i) => set(control, subject, i)));
        const won = all.findIndex(({ status }) => status === "fulfilled");
        expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
        const { effective: _, ...there } = await subjects.get(admin, "user", subject);
        expect([there.tier, ...there.limits.map(({ windows }) => windows[0])]).toContain(
          name === "tier" ? `tier-${won}` : `${won + 2}/s`,
        );
        for (const one of all)
          if (one.status === "rejected")
            expect(one.reason).toMatchObject({
              code: "version_conflict",
              currentVersion: there.version,
              current: keptSubject.render(there),
            });
      }
    }
    await Promise.all(controls.map((control) => control.close()));
  });
});
