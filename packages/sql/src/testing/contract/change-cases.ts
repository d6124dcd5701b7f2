import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { RuleTaken, TokenNameTaken } from "../../errors.ts";
import type { StoreChange } from "../../policy-store.ts";
import { sample } from "../sample-records.ts";
import { ids, type PolicyStoreCase, readEverything } from "./policy-store-case.ts";

/** Changes happen one after another, each whole or not at all. */
export const changeCases: readonly PolicyStoreCase[] = [
  {
    name: "gives a rule to one policy, until that is deleted or gets another",
    async run({ store }) {
      const first = sample.policy({ id: "first", ruleKey: "k" });
      const second = sample.policy({ id: "second", ruleKey: "k" });
      await store.change((change) => change.putPolicy(first));
      await store.change((change) => change.putPolicy({ ...first, version: 2 }));
      await rejects(
        store.change((change) => change.putPolicy(second)),
        (error: unknown) => {
          strictEqual(error instanceof RuleTaken && error.policy, "first");
          return true;
        },
      );
      await store.change(async (change) => {
        await rejects(change.putPolicy(second), RuleTaken);
        await change.putPolicy({ ...second, ruleKey: "other" });
      });
      await store.change((change) => change.putPolicy({ ...first, ruleKey: undefined }));
      await store.change((change) => change.putPolicy(second));
      await store.change((change) => change.putPolicy({ ...second, deleted: true }));
      await store.change((change) => change.putPolicy(first));
      await rejects(
        store.change((change) => change.putPolicy(second)),
        RuleTaken,
      );
      strictEqual((await store.read((view) => view.findPolicyByRule("k")))?.id, "first");
      const without = ["u1", "u2"].map((id) => sample.policy({ id, ruleKey: undefined }));
      await store.change(async (change) => {
        for (const each of without) await change.putPolicy(each);
      });
    },
  },
  {
    name: "gives a name to one token, until that token is revoked",
    async run({ store }) {
      await store.change((change) => change.putToken(sample.token()));
      await store.change((change) => change.putToken(sample.token({ role: "viewer" })));
      await rejects(
        store.change((change) => change.putToken(sample.token({ id: "t2" }))),
        TokenNameTaken,
      );
      await store.change(async (change) => {
        await rejects(change.putToken(sample.token({ id: "t2" })), TokenNameTaken);
        await change.putToken(sample.token({ revokedMs: 7 }));
        await change.putToken(sample.token({ id: "t2" }));
      });
      await store.change((change) => change.putToken(sample.token({ id: "t3", revokedMs: 8 })));
      deepStrictEqual(ids(await store.read((view) => view.tokens())), ["t1", "t2", "t3"]);
      await rejects(
        store.change((change) => change.putToken(sample.token())),
        TokenNameTaken,
      );
    },
  },
  {
    name: "counts one generation for each change that asks, and none for a change that was undone",
    async run({ store }) {
      const twice = async (change: { nextGeneration(): Promise<number> }): Promise<readonly number[]> =>
        Promise.all([change.nextGeneration(), change.nextGeneration()]);
      deepStrictEqual(await store.change(twice), [1, 1]);
      await rejects(
        store.change(async (change) => {
          strictEqual(await change.nextGeneration(), 2);
          throw new Error("no");
        }),
      );
      deepStrictEqual(await store.change(twice, { dryRun: true }), [2, 2]);
      await store.change((change) => change.putPolicy(sample.policy()));
      strictEqual((await store.readPulse()).generation, 1);
      await store.change(async (change) => {
        strictEqual(await change.nextGeneration(), 2);
        strictEqual((await change.pulse()).generation, 2);
      });
      strictEqual((await store.readPulse()).generation, 2);
    },
  },
  {
    name: "undoes a change whole if it throws, and throws the same error",
    async run({ store }) {
      await store.change((change) => change.putPolicy(sample.policy()));
      const before = await store.read(readEverything);
      const error = new Error("changed its mind");
      await rejects(
        store.change(async (change) => {
          await change.nextGeneration();
          await change.putPolicy(sample.policy({ version: 2 }));
          await change.addVersion(sample.version());
          await change.putKillSwitch(sample.killSwitch());
          await change.putSubject(sample.subject());
          await change.addAudit(sample.audit());
          deepStrictEqual((await change.policy("login"))?.version, 2);
          throw error;
        }),
        (thrown: unknown) => thrown === error,
      );
      await rejects(
        store.note(async (note) => {
          await note.addAudit(sample.audit());
          await note.putNode(sample.node());
          throw error;
        }),
        (thrown: unknown) => thrown === error,
      );
      deepStrictEqual(await store.read(readEverything), before);
    },
  },
  {
    name: "does everything in a dry run, and undoes it",
    async run({ store }) {
      await store.change((change) => change.putPolicy(sample.policy({ ruleKey: "k" })));
      const before = await store.read(readEverything);
      const seen = await store.change(
        async (change) => {
          await change.putPolicy(sample.policy({ version: 2 }));
          await change.nextGeneration();
          return (await change.policy("login"))?.version;
        },
        { dryRun: true },
      );
      strictEqual(seen, 2);
      await rejects(
        store.change((change) => change.putPolicy(sample.policy({ id: "b", ruleKey: "k" })), { dryRun: true }),
        RuleTaken,
      );
      deepStrictEqual(await store.read(readEverything), before);
      await store.change((change) => change.putPolicy(sample.policy({ version: 3 })), { dryRun: false });
      strictEqual((await store.read((view) => view.policy("login")))?.version, 3);
    },
  },
  {
    name: "makes changes one after another, so that none is lost",
    async run({ store, openAnother }) {
      const stores = [store, ...(openAnother === undefined ? [] : [await openAnother(), await openAnother()])];
      await store.change((change) => change.putPolicy(sample.policy({ version: 0 })));
      const seen = await Promise.all(
        Array.from({ length: 24 }, (_, index) =>
          stores[index % stores.length]!.change(async (change) => {
            const version = ((await change.policy("login"))?.version ?? 0) + 1;
            await change.putPolicy(sample.policy({ version }));
            await change.addVersion(sample.version({ version }));
            return change.nextGeneration();
          }),
        ),
      );
      const everyOne = Array.from({ length: 24 }, (_, index) => index + 1);
      deepStrictEqual(
        seen.toSorted((one, other) => one - other),
        everyOne,
      );
      const versions = await store.read((view) => view.versions("login"));
      deepStrictEqual(
        versions.map(({ version }) => version),
        everyOne.toReversed(),
      );
    },
  },
  {
    name: "gives a rule and a name to one of several changes that claim it at once",
    async run({ store, openAnother }) {
      const other = (await openAnother?.()) ?? store;
      const results = await Promise.allSettled(
        Array.from({ length: 8 }, (_, index) =>
          (index % 2 === 0 ? store : other).change(async (change) => {
            await change.putPolicy(sample.policy({ id: `p${index}`, ruleKey: "k" }));
          }),
        ),
      );
      const tokens = await Promise.allSettled(
        Array.from({ length: 8 }, (_, index) =>
          (index % 2 === 0 ? store : other).change((change) => change.putToken(sample.token({ id: `t${index}` }))),
        ),
      );
      const refusals = (settled: readonly PromiseSettledResult<void>[]): readonly unknown[] =>
        settled.flatMap((each) => (each.status === "rejected" ? [(each.reason as Error).name] : []));
      deepStrictEqual(
        refusals(results),
        Array.from({ length: 7 }, () => "RuleTaken"),
      );
      deepStrictEqual(
        refusals(tokens),
        Array.from({ length: 7 }, () => "TokenNameTaken"),
      );
    },
  },
  {
    name: "reads one view of one moment, whatever others write meanwhile",
    async run({ store, openAnother }) {
      const other = await openAnother?.();
      if (other === undefined) return;
      await other.change((change) => change.putPolicy(sample.policy()));
      await store.read(async (view) => {
        strictEqual((await view.policy("login"))?.version, 1);
        await other.change(changeAll);
        strictEqual((await view.policy("login"))?.version, 1);
        strictEqual((await view.pulse()).generation, 0);
        deepStrictEqual(await view.subjects(), []);
      });
      await store.read(async (view) => {
        strictEqual((await view.policy("login"))?.version, 2);
        strictEqual((await view.pulse()).generation, 1);
        strictEqual((await view.subjects()).length, 1);
      });
    },
  },
  {
    name: "hides a change from others until it is committed",
    async run({ store, openAnother }) {
      const other = await openAnother?.();
      if (other === undefined) return;
      const before = await other.read(readEverything);
      await store.change(async (change) => {
        await changeAll(change);
        deepStrictEqual(await other.read(readEverything), before);
      });
      strictEqual((await other.readPulse()).generation, 1);
    },
  },
];

async function changeAll(change: StoreChange): Promise<void> {
  await change.nextGeneration();
  await change.putPolicy(sample.policy({ version: 2 }));
  await change.putSubject(sample.subject());
}
