import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { PolicyStoreUnavailable, RuleTaken, TokenNameTaken, UnstorableValue, VersionTaken } from "../errors.ts";
import type { PolicyStore, StoreChange, StoreView } from "../policy-store.ts";
import type { AuditRecord, KillSwitchRecord } from "../records.ts";
import { sample } from "./sample-records.ts";

/** A store to be held to the contract, in which nothing was ever written. */
export interface PolicyStoreUnderTest {
  readonly store: PolicyStore;
  /** Opens the same data once more, as another node does. Absent where nobody else can have it. */
  readonly openAnother?: (() => Promise<PolicyStore>) | undefined;
}

/** One promise of `PolicyStore`. Runs under any test runner: it throws when the promise is broken. */
export interface PolicyStoreCase {
  readonly name: string;
  run(under: PolicyStoreUnderTest): Promise<void>;
}

const killSwitch: KillSwitchRecord = { mode: "closed", sinceMs: 1, untilMs: 2, reason: "an attack", author: "ada" };

/** Longer than an index takes, and hard to compress. */
function longText(end: string): string {
  let text = "";
  for (let number = 1; text.length < 4_000; number = (number * 48_271) % 2_147_483_647) text += number.toString(36);
  return text + end;
}

const oddTexts = [
  "",
  " ",
  "\n\t\u0001",
  "'; drop table sluice_policies; --",
  "%_\\",
  "é",
  "e\u0301",
  "😀",
  "\ufffd",
  longText("a"),
];

function ids(records: readonly { readonly id: string }[]): readonly string[] {
  return records.map(({ id }) => id);
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
    tokens: await view.tokens(),
    audit: await view.audit(),
    nodes: await view.nodes(),
  };
}

/** What every policy store promises. */
export const policyStoreContract: readonly PolicyStoreCase[] = [
  {
    name: "holds nothing at first",
    async run({ store }) {
      deepStrictEqual(await store.readPulse(), { generation: 0, killSwitch: undefined });
      deepStrictEqual(await store.read(readEverything), {
        pulse: { generation: 0, killSwitch: undefined },
        policies: [],
        versions: [],
        rollouts: [],
        tallies: [],
        subjects: [],
        subjectLimits: [],
        tokens: [],
        audit: [],
        nodes: [],
      });
      strictEqual(await store.read((view) => view.policy("login")), undefined);
      strictEqual(await store.read((view) => view.version("login", 1)), undefined);
      strictEqual(await store.read((view) => view.rollout("r1")), undefined);
      strictEqual(await store.read((view) => view.subject("user", "ada")), undefined);
      strictEqual(await store.read((view) => view.token("t1")), undefined);
    },
  },
  {
    name: "writes many records at once as it writes them one by one",
    async run({ store }) {
      const numbers = Array.from({ length: 250 }, (_, index) => String(index).padStart(3, "0"));
      const policies = numbers.map((id) => sample.policy({ id, ruleKey: `rule ${id}` }));
      const versions = numbers.flatMap((policy) => [
        sample.version({ policy, version: 2 }),
        sample.version({ policy, version: 1 }),
      ]);
      const subjects = numbers.map((value) => sample.subject({ value }));
      const limits = numbers.map((value) => sample.subjectLimit({ value }));
      const audit = numbers.map((id) => sample.audit({ id }));
      await store.change(async (change) => {
        await change.putPolicy(policies.map((policy) => ({ ...policy, version: 9 })));
        await change.putPolicy(policies);
        await change.putPolicy([]);
        await change.addVersion(versions);
        await change.putSubject(subjects.map((subject) => ({ ...subject, tier: "old" })));
        await change.putSubject(subjects);
        // What is said last holds.
        await change.putSubjectLimit([...limits.map((limit) => ({ ...limit, windows: "[]" })), ...limits]);
        await change.addAudit(audit);
        await change.addAudit(audit);
      });
      await store.read(async (view) => {
        deepStrictEqual(await view.policies(), policies);
        deepStrictEqual(await view.versions("249"), versions.slice(-2));
        deepStrictEqual(await view.newestVersions(), new Map(numbers.map((policy) => [policy, 2])));
        deepStrictEqual(await view.subjects(), subjects);
        deepStrictEqual(await view.subjectLimits(), limits);
        deepStrictEqual(await view.audit(), audit.toReversed());
      });
      const another = sample.policy({ id: "another", ruleKey: "rule 007" });
      await rejects(
        store.change((change) => change.putPolicy([sample.policy({ id: "fine" }), another])),
        (error: unknown) => error instanceof RuleTaken && error.policy === "007",
      );
      const two = ["a", "b"].map((id) => sample.policy({ id, ruleKey: "the same" }));
      await rejects(
        store.change((change) => change.putPolicy(two)),
        RuleTaken,
      );
      const again = [sample.version({ policy: "new" }), sample.version({ policy: "100" })];
      await rejects(
        store.change((change) => change.addVersion(again)),
        (error: unknown) => error instanceof VersionTaken && error.message.includes("100"),
      );
      strictEqual((await store.read((view) => view.policies())).length, policies.length);
    },
  },
  {
    name: "gives back every record as it was written, with and without what may be absent",
    async run({ store }) {
      const policies = [
        sample.policy({ id: "a", ruleKey: "user|ada|/|gold" }),
        sample.policy({ id: "b", owner: undefined }),
      ];
      const versions = [
        sample.version({ policy: "a", version: 2, revertOf: 1, deleted: true }),
        sample.version({ policy: "a" }),
      ];
      const rollouts = [
        sample.rollout({ createdMs: 2 }),
        sample.rollout({ id: "r0", createdMs: 1, shadow: true, expectMoreDenials: false, steps: [] }),
      ];
      const subjects = [sample.subject(), sample.subject({ value: "bob", tier: undefined })];
      const limits = [sample.subjectLimit(), sample.subjectLimit({ limit: "per-second", untilMs: undefined })];
      const tokens = [
        sample.token({ lastUsedMs: 5 }),
        sample.token({ id: "t2", name: "other", team: undefined, expiresMs: undefined, revokedMs: 9 }),
      ];
      const audit = [
        sample.audit({ id: "a2", before: "{}", after: undefined, generation: undefined, outcome: "refused" }),
        sample.audit(),
      ];
      const nodes = [sample.node(), sample.node({ id: "n2", generation: 0 })];
      const tallies = [sample.tally(), sample.tally({ side: "shadow" })];
      await store.change(async (change) => {
        for (const each of policies) await change.putPolicy(each);
        for (const each of versions) await change.addVersion(each);
        for (const each of rollouts) await change.putRollout(each);
        for (const each of subjects) await change.putSubject(each);
        for (const each of limits) await change.putSubjectLimit(each);
        for (const each of tokens) await change.putToken(each);
        for (const each of audit) await change.addAudit(each);
        for (const each of nodes) await change.putNode(each);
        await change.putTallies(tallies);
        await change.putKillSwitch(killSwitch);
        await change.nextGeneration();
      });
      deepStrictEqual(await store.read(readEverything), {
        pulse: { generation: 1, killSwitch },
        policies,
        versions: [versions, []],
        rollouts,
        tallies: [tallies, []],
        subjects,
        subjectLimits: limits,
        tokens,
        audit,
        nodes,
      });
      await store.read(async (view) => {
        deepStrictEqual(await view.policy("a"), policies[0]);
        deepStrictEqual(await view.version("a", 2), versions[0]);
        deepStrictEqual(await view.rollout("r0"), rollouts[1]);
        deepStrictEqual(await view.subject("user", "bob"), subjects[1]);
        deepStrictEqual(await view.token("t2"), tokens[1]);
      });
    },
  },
  {
    name: "puts every record whole in place of the one before",
    async run({ store }) {
      const first = sample.rollout();
      const later = sample.rollout({
        policy: "x",
        state: "rolled_back",
        step: 1,
        strikes: 0,
        steps: [],
        reason: "",
        shadow: true,
      });
      const policy = sample.policy({ version: 2, document: "", owner: undefined, deleted: true, changedMs: 5 });
      const token = sample.token({ name: "n", role: "viewer", team: undefined, expiresMs: undefined, revokedMs: 3 });
      const node = sample.node({ name: "other", seenMs: 9, generation: 8, details: '{"a":1}' });
      const subject = sample.subject({ tier: undefined, version: 4 });
      const limit = sample.subjectLimit({ windows: "[]", untilMs: undefined, reason: "", author: "x", atMs: 4 });
      await store.change(async (change) => {
        await change.putRollout(first);
        await change.putPolicy(sample.policy({ ruleKey: "k" }));
        await change.putToken(sample.token());
        await change.putNode(sample.node());
        await change.putSubject(sample.subject());
        await change.putSubjectLimit(sample.subjectLimit({ untilMs: undefined }));
      });
      await store.change(async (change) => {
        await change.putRollout(later);
        await change.putPolicy(policy);
        await change.putToken(token);
        await change.putNode(node);
        await change.putSubject(subject);
        await change.putSubjectLimit(limit);
      });
      await store.read(async (view) => {
        deepStrictEqual(await view.rollouts(), [later]);
        deepStrictEqual(await view.policy("login"), policy);
        deepStrictEqual(await view.tokens(), [token]);
        deepStrictEqual(await view.nodes(), [node]);
        deepStrictEqual(await view.subjects(), [subject]);
        deepStrictEqual(await view.subjectLimits(), [limit]);
      });
    },
  },
  {
    name: "keeps texts of every kind and length, apart from one another",
    async run({ store }) {
      const values = [...oddTexts, longText("b")];
      await store.change(async (change) => {
        for (const [index, value] of values.entries()) {
          await change.putSubject(sample.subject({ value, tier: `tier ${index}` }));
          await change.putSubjectLimit(sample.subjectLimit({ value, windows: `["${index}/s"]` }));
          await change.putPolicy(sample.policy({ id: `p${index}`, ruleKey: value, document: value, owner: value }));
          await change.addAudit(sample.audit({ id: `a${index}`, target: value, actor: value, why: value }));
        }
      });
      await store.read(async (view) => {
        for (const [index, value] of values.entries()) {
          strictEqual((await view.subject("user", value))?.tier, `tier ${index}`);
          deepStrictEqual(
            (await view.subjectLimits("user", value)).map(({ windows }) => windows),
            [`["${index}/s"]`],
          );
          deepStrictEqual(
            await view.findPolicyByRule(value),
            sample.policy({ id: `p${index}`, ruleKey: value, document: value, owner: value }),
          );
          deepStrictEqual(ids(await view.policies({ owner: value })), [`p${index}`]);
          deepStrictEqual(ids(await view.audit({ target: value })), [`a${index}`]);
          deepStrictEqual(ids(await view.audit({ actor: value })), [`a${index}`]);
        }
      });
    },
  },
  {
    name: "refuses by its field what no store keeps as it is, and finds nothing by it",
    async run({ store }) {
      const bad: readonly [field: string, write: (change: StoreChange) => Promise<void>][] = [
        ["document", (change) => change.putPolicy(sample.policy({ document: "a\0b" }))],
        ["value", (change) => change.putSubject(sample.subject({ value: "\ud800" }))],
        ["changedMs", (change) => change.putPolicy(sample.policy({ changedMs: 1.5 }))],
        ["version", (change) => change.putPolicy(sample.policy({ version: Number.NaN }))],
        ["id", (change) => change.putPolicy(sample.policy({ id: "x".repeat(257) }))],
      ];
      for (const [field, write] of bad) {
        await rejects(store.change(write), (error: unknown) => {
          strictEqual(error instanceof UnstorableValue && error.field, field);
          return true;
        });
      }
      await store.read(async (view) => {
        strictEqual(await view.policy("a\0b"), undefined);
        strictEqual(await view.subject("user", "\udc00"), undefined);
        deepStrictEqual(await view.audit({ target: "\0" }), []);
        deepStrictEqual(await view.policies({ after: "\0" }), []);
      });
      strictEqual(await store.change((change) => change.deleteSubjectLimit("user", "\0", "p", "", "custom")), false);
    },
  },
  {
    name: "records an attempt whatever it was about",
    async run({ store }) {
      await store.note((note) => note.addAudit(sample.audit({ target: "a\0b\ud800c", why: "\0" })));
      deepStrictEqual(await store.read((view) => view.audit()), [
        sample.audit({ target: "a\ufffdb\ufffdc", why: "\ufffd" }),
      ]);
    },
  },
  {
    name: "lists by id in the order of bytes, a page at a time",
    async run({ store }) {
      const names = ["B", "_", "a", "a-b", "ab", "b", "é", "😀"];
      await store.change(async (change) => {
        for (const id of names.toReversed()) {
          await change.putPolicy(sample.policy({ id, owner: id < "b" ? "early" : "late" }));
          await change.putToken(sample.token({ id, name: id }));
          await change.putNode(sample.node({ id }));
          await change.putSubject(sample.subject({ value: id }));
          await change.putSubject(sample.subject({ dimension: "ip", value: id }));
          await change.putSubjectLimit(sample.subjectLimit({ value: id }));
        }
      });
      await store.read(async (view) => {
        deepStrictEqual(ids(await view.policies()), names);
        deepStrictEqual(ids(await view.policies({ limit: 3 })), ["B", "_", "a"]);
        deepStrictEqual(ids(await view.policies({ after: "a", limit: 3 })), ["a-b", "ab", "b"]);
        deepStrictEqual(ids(await view.policies({ after: "b" })), ["é", "😀"]);
        deepStrictEqual(ids(await view.policies({ after: "a", owner: "early" })), ["a-b", "ab"]);
        deepStrictEqual(await view.policies({ limit: 0 }), []);
        await rejects(view.policies({ limit: -1 }), RangeError);
        await rejects(view.policies({ limit: 0.5 }), RangeError);
        deepStrictEqual(ids(await view.tokens()), names);
        deepStrictEqual(ids(await view.nodes()), names);
        const values = (await view.subjects()).map(({ dimension, value }) => `${dimension} ${value}`);
        deepStrictEqual(values, [...names.map((name) => `ip ${name}`), ...names.map((name) => `user ${name}`)]);
        const page = await view.subjects({ dimension: "ip", after: "_", limit: 2 });
        deepStrictEqual(
          page.map(({ value }) => value),
          ["a", "a-b"],
        );
        await rejects(view.subjects({ after: "_" }), TypeError);
        deepStrictEqual(
          (await view.subjectLimits("user")).map(({ value }) => value),
          names,
        );
        deepStrictEqual(await view.subjectLimits("ip"), []);
      });
    },
  },
  {
    name: "keeps versions as they were written, newest first",
    async run({ store }) {
      const versions = Array.from({ length: 12 }, (_, index) =>
        sample.version({ version: index + 1, why: `${index}` }),
      );
      await store.change(async (change) => {
        for (const each of versions) await change.addVersion(each);
        await change.addVersion(sample.version({ policy: "other", version: 99 }));
      });
      await rejects(
        store.change((change) => change.addVersion(sample.version({ version: 3, document: "x" }))),
        VersionTaken,
      );
      await store.read(async (view) => {
        deepStrictEqual(await view.versions("login"), versions.toReversed());
        deepStrictEqual(
          (await view.versions("login", { limit: 2 })).map(({ version }) => version),
          [12, 11],
        );
        deepStrictEqual(
          (await view.versions("login", { after: "11", limit: 3 })).map(({ version }) => version),
          [10, 9, 8],
        );
        deepStrictEqual(await view.versions("login", { after: "1" }), []);
        deepStrictEqual(await view.versions("login", { after: "none" }), []);
        deepStrictEqual(await view.version("login", 3), versions[2]);
        strictEqual(await view.version("login", 1.5), undefined);
      });
    },
  },
  {
    name: "leaves deleted policies out of lists, and tells them by their id",
    async run({ store }) {
      const gone = sample.policy({ id: "gone", deleted: true, document: "", ruleKey: "k" });
      await store.change(async (change) => {
        await change.putPolicy(gone);
        await change.putPolicy(sample.policy());
      });
      await store.read(async (view) => {
        deepStrictEqual(ids(await view.policies()), ["login"]);
        deepStrictEqual(await view.policy("gone"), gone);
        strictEqual(await view.findPolicyByRule("k"), undefined);
      });
    },
  },
  {
    name: "gives a rule to one policy, until that is deleted or has another",
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
    name: "gives a name to one token, until that is revoked",
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
    name: "remembers the latest use of a token, and nothing else by it",
    async run({ store }) {
      await store.change((change) => change.putToken(sample.token()));
      for (const usedMs of [5, 9, 7]) await store.note((note) => note.touchToken("t1", usedMs));
      await store.note((note) => note.touchToken("unknown", 5));
      deepStrictEqual(await store.read((view) => view.tokens()), [sample.token({ lastUsedMs: 9 })]);
    },
  },
  {
    name: "counts a generation for each change that asks, once, and for none that was undone",
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
    name: "undoes a change whole by what was thrown in it, and throws that",
    async run({ store }) {
      await store.change((change) => change.putPolicy(sample.policy()));
      const before = await store.read(readEverything);
      const error = new Error("thought better of it");
      await rejects(
        store.change(async (change) => {
          await change.nextGeneration();
          await change.putPolicy(sample.policy({ version: 2 }));
          await change.addVersion(sample.version());
          await change.putKillSwitch(killSwitch);
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
    name: "carries out changes one after another, so that none is lost",
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
    name: "gives a rule and a name to one of those who want it at once",
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
    name: "shows nothing of a change to others before it is done",
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
  {
    name: "finds audit records by each of their marks, newest first, a page at a time",
    async run({ store }) {
      const record = (number: number, given: Partial<AuditRecord>): AuditRecord =>
        sample.audit({ id: `a${number}`, atMs: number * 10, ...given });
      const records = [
        record(1, { target: "x", actor: "ada" }),
        record(2, { target: "x", kind: "subject", actor: "bob" }),
        record(3, { target: "y", outcome: "refused", actor: "ada" }),
        record(4, { target: "y", action: "kill_switch.on", kind: "kill_switch" }),
        record(5, { target: "x", outcome: "refused" }),
      ];
      await store.note(async (note) => {
        for (const each of [records[2]!, records[0]!, records[4]!, records[1]!, records[3]!]) await note.addAudit(each);
        // Said again, it is the same.
        await note.addAudit(records[0]!);
        await note.addAudit({ ...records[0]!, why: "never in place of another" });
      });
      await store.read(async (view) => {
        deepStrictEqual(await view.audit(), records.toReversed());
        deepStrictEqual(ids(await view.audit({ target: "x" })), ["a5", "a2", "a1"]);
        deepStrictEqual(ids(await view.audit({ target: "x", kind: "policy" })), ["a5", "a1"]);
        deepStrictEqual(ids(await view.audit({ kind: "kill_switch" })), ["a4"]);
        deepStrictEqual(ids(await view.audit({ actor: "ada" })), ["a3", "a1"]);
        deepStrictEqual(ids(await view.audit({ action: "policy.put", outcome: "refused" })), ["a5", "a3"]);
        deepStrictEqual(ids(await view.audit({ sinceMs: 20, untilMs: 40 })), ["a3", "a2"]);
        deepStrictEqual(ids(await view.audit({ limit: 2 })), ["a5", "a4"]);
        deepStrictEqual(ids(await view.audit({ after: "a4", limit: 2 })), ["a3", "a2"]);
        deepStrictEqual(ids(await view.audit({ after: "a5", target: "x" })), ["a2", "a1"]);
        deepStrictEqual(await view.audit({ after: "a1" }), []);
      });
      strictEqual(await store.note((note) => note.sweepAudit(30, 1)), 1);
      strictEqual(await store.note((note) => note.sweepAudit(30, 5)), 1);
      strictEqual(await store.note((note) => note.sweepAudit(30, 5)), 0);
      deepStrictEqual(ids(await store.read((view) => view.audit())), ["a5", "a4", "a3"]);
    },
  },
  {
    name: "finds rollouts by policy and state, newest first, a page at a time",
    async run({ store }) {
      await store.change(async (change) => {
        await change.putRollout(sample.rollout({ id: "c", createdMs: 1, state: "done", toVersion: 1 }));
        await change.putRollout(sample.rollout({ id: "a", createdMs: 2, policy: "other", toVersion: 3 }));
        await change.putRollout(sample.rollout({ id: "b", createdMs: 2, state: "paused", toVersion: 6 }));
        await change.putRollout(sample.rollout({ id: "d", createdMs: 3, toVersion: 5 }));
      });
      await store.read(async (view) => {
        deepStrictEqual(ids(await view.rollouts()), ["d", "b", "a", "c"]);
        deepStrictEqual(ids(await view.rollouts({ policy: "login" })), ["d", "b", "c"]);
        deepStrictEqual(ids(await view.rollouts({ states: ["running", "paused"] })), ["d", "b", "a"]);
        deepStrictEqual(ids(await view.rollouts({ states: ["running"], policy: "other" })), ["a"]);
        deepStrictEqual(await view.rollouts({ states: [] }), []);
        deepStrictEqual(ids(await view.rollouts({ policy: "login", toVersions: { from: 2, to: 5 } })), ["d"]);
        deepStrictEqual(ids(await view.rollouts({ limit: 2 })), ["d", "b"]);
        deepStrictEqual(ids(await view.rollouts({ after: "b", limit: 2 })), ["a", "c"]);
        deepStrictEqual(await view.rollouts({ after: "unknown" }), []);
      });
    },
  },
  {
    name: "sets what a node counted, and adds nothing to what it said before",
    async run({ store }) {
      const first = sample.tally({ minute: 10 });
      const other = sample.tally({ minute: 11, node: "n2", step: 1, side: "new" });
      await store.note((note) => note.putTallies([first, other]));
      await store.note((note) => note.putTallies([]));
      const later = { ...first, decided: 150, denied: 4 };
      await store.note((note) => note.putTallies([{ ...first, decided: 120 }, later]));
      await store.note((note) => note.putTallies([sample.tally({ rollout: "r2", minute: 10 })]));
      deepStrictEqual(await store.read((view) => view.tallies("r1")), [later, other]);
      deepStrictEqual(await store.read((view) => view.tallies("r1", 11)), [other]);
      const many = Array.from({ length: 2_500 }, (_, minute) => sample.tally({ rollout: "r3", minute }));
      await store.note((note) => note.putTallies(many));
      deepStrictEqual(await store.read((view) => view.tallies("r3")), many);
      strictEqual(await store.note((note) => note.sweepTallies(11)), 13);
      deepStrictEqual(await store.read((view) => view.tallies("r1")), [other]);
    },
  },
  {
    name: "lets go of nodes, one by one and those long gone",
    async run({ store }) {
      await store.note(async (note) => {
        for (const [id, seenMs] of [
          ["n1", 10],
          ["n2", 20],
          ["n3", 30],
        ] as const)
          await note.putNode(sample.node({ id, seenMs }));
      });
      await store.note((note) => note.deleteNode("n3"));
      strictEqual(await store.note((note) => note.sweepNodes(20)), 1);
      deepStrictEqual(ids(await store.read((view) => view.nodes())), ["n2"]);
    },
  },
  {
    name: "keeps a custom limit under an override, and each in place of its own kind alone",
    async run({ store }) {
      const custom = sample.subjectLimit({ untilMs: undefined, windows: '["1/s"]' });
      const override = sample.subjectLimit({ untilMs: 50, windows: '["2/s"]' });
      await store.change(async (change) => {
        await change.putSubject(sample.subject());
        for (const record of [{ ...custom, windows: "[]" }, { ...override, windows: "[]" }, custom, override])
          await change.putSubjectLimit(record);
      });
      deepStrictEqual(await store.read((view) => view.subjectLimits()), [custom, override]);
      strictEqual(await store.change((change) => change.sweepSubjectLimits(51)), 1);
      deepStrictEqual(await store.read((view) => view.subjectLimits()), [custom]);
    },
  },
  {
    name: "deletes a subject with its limits, and a limit alone",
    async run({ store }) {
      await store.change(async (change) => {
        for (const value of ["ada", "bob"]) {
          await change.putSubject(sample.subject({ value }));
          for (const limit of ["", "x"]) await change.putSubjectLimit(sample.subjectLimit({ value, limit }));
        }
        await change.putSubject(sample.subject({ dimension: "ip", value: "ada" }));
      });
      await store.change((change) => change.deleteSubject("user", "ada"));
      const deleted = (kind: "custom" | "override") =>
        store.change((change) => change.deleteSubjectLimit("user", "bob", "login", "x", kind));
      deepStrictEqual(
        [await deleted("custom"), await deleted("override"), await deleted("override")],
        [false, true, false],
      );
      await store.read(async (view) => {
        deepStrictEqual(
          (await view.subjects()).map(({ dimension, value }) => [dimension, value]),
          [
            ["ip", "ada"],
            ["user", "bob"],
          ],
        );
        deepStrictEqual(await view.subjectLimits(), [sample.subjectLimit({ value: "bob" })]);
      });
    },
  },
  {
    name: "sweeps overrides that have ended, and no custom limit",
    async run({ store }) {
      await store.change(async (change) => {
        for (const [limit, untilMs] of [
          ["a", 10],
          ["b", 20],
          ["c", undefined],
        ] as const)
          await change.putSubjectLimit(sample.subjectLimit({ limit, untilMs }));
      });
      strictEqual(await store.change((change) => change.sweepSubjectLimits(20)), 1);
      deepStrictEqual(
        (await store.read((view) => view.subjectLimits())).map(({ limit }) => limit),
        ["b", "c"],
      );
    },
  },
  {
    name: "tells the kill switch with the pulse, until it is off",
    async run({ store }) {
      await store.change((change) => change.putKillSwitch(killSwitch));
      deepStrictEqual((await store.readPulse()).killSwitch, killSwitch);
      await store.change((change) => change.putKillSwitch({ ...killSwitch, mode: "open", untilMs: 9 }));
      deepStrictEqual((await store.readPulse()).killSwitch, { ...killSwitch, mode: "open", untilMs: 9 });
      await store.change((change) => change.putKillSwitch(undefined));
      strictEqual((await store.readPulse()).killSwitch, undefined);
    },
  },
  {
    name: "tells what time it is, one to all who ask",
    async run({ store, openAnother }) {
      const other = (await openAnother?.()) ?? store;
      const times: number[] = [];
      for (const each of [store, other, store, other]) times.push(await each.read((view) => view.nowMs()));
      deepStrictEqual(
        times,
        times.toSorted((one, another) => one - another),
      );
      strictEqual(times.every(Number.isSafeInteger), true);
      strictEqual(times[0]! > Date.UTC(2020, 0), true);
    },
  },
  {
    name: "lets one node lead, and another when that stops asking",
    async run({ store, openAnother }) {
      const other = (await openAnother?.()) ?? store;
      strictEqual(await store.lead("n1", 60_000), true);
      strictEqual(await other.lead("n2", 60_000), false);
      strictEqual(await store.lead("n1", 60_000), true);
      strictEqual(await store.lead("n1", 1), true);
      await sleep(50);
      const both = await Promise.all([store.lead("n3", 60_000), other.lead("n2", 60_000)]);
      deepStrictEqual(both.toSorted(), [false, true]);
      // Who leads for no time at all has given it up.
      const leader = both[0] === true ? "n3" : "n2";
      strictEqual(await store.lead("n1", 60_000), false);
      await store.lead(leader, 0);
      strictEqual(await store.lead("n1", 60_000), true);
    },
  },
  {
    name: "refuses a transaction inside of another, and a view after its end",
    async run({ store }) {
      await rejects(
        store.read(() => store.readPulse()),
        /inside of another/,
      );
      await rejects(
        store.change(() => store.note((note) => note.deleteNode("n"))),
        /inside of another/,
      );
      const view = await store.read(async (each) => each);
      await rejects(view.pulse(), /after its end/);
      let late: Promise<unknown> | undefined;
      const change = await store.change(async (each) => {
        late = sleep(1).then(() => each.putPolicy(sample.policy()));
        late.catch(() => undefined);
        return each;
      });
      await rejects(change.putPolicy(sample.policy()), /after its end/);
      await rejects(late!, /after its end/);
      strictEqual(await store.read((each) => each.policy("login")), undefined);
    },
  },
  {
    name: "is unavailable once it is closed, also to those who close it again",
    async run({ store }) {
      await Promise.all([store.close(), store.close()]);
      await store.close();
      for (const ask of [
        () => store.readPulse(),
        () => store.read(async () => 1),
        () => store.note(async () => 1),
        () => store.change(async () => 1),
        () => store.lead("n1", 1),
      ])
        await rejects(ask(), PolicyStoreUnavailable);
    },
  },
  {
    name: "does what was begun before it was closed",
    async run({ store }) {
      const written = store.change(async (change) => {
        await change.putPolicy(sample.policy());
        return change.nextGeneration();
      });
      await Promise.all([written, store.close()]);
      strictEqual(await written, 1);
    },
  },
];

async function changeAll(change: StoreChange): Promise<void> {
  await change.nextGeneration();
  await change.putPolicy(sample.policy({ version: 2 }));
  await change.putSubject(sample.subject());
}
