import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { RuleTaken, UnstorableValue, VersionTaken } from "../../errors.ts";
import type { StoreChange } from "../../policy-store.ts";
import { sample } from "../sample-records.ts";
import { ids, type PolicyStoreCase, readEverything } from "./policy-store-case.ts";

/** Longer than an index accepts, and hard to compress. */
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

/** Records come back as they were written, and anything that could not come back is refused. */
export const recordCases: readonly PolicyStoreCase[] = [
  {
    name: "is empty at first",
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
        disabled: [],
        blocks: [],
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
        // The last one counts.
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
    name: "returns every record as it was written, with and without optional fields",
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
      const disabled = sample.disabled({ mode: "shadow" });
      const blocks = [sample.block(), sample.block({ value: "bob", policies: ["login", "odd \n id"] })];
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
        await change.putDisabled(disabled);
        await change.putBlock(blocks);
        for (const each of tokens) await change.putToken(each);
        for (const each of audit) await change.addAudit(each);
        for (const each of nodes) await change.putNode(each);
        await change.putTallies(tallies);
        await change.putKillSwitch(sample.killSwitch());
        await change.nextGeneration();
      });
      deepStrictEqual(await store.read(readEverything), {
        pulse: { generation: 1, killSwitch: sample.killSwitch() },
        policies,
        versions: [versions, []],
        rollouts,
        tallies: [tallies, []],
        subjects,
        subjectLimits: limits,
        disabled: [disabled],
        blocks,
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
    name: "replaces every record whole",
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
    name: "stores texts of every kind and length, and keeps them apart",
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
    name: "refuses a value that cannot be stored unchanged, names its field, and finds nothing by it",
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
    name: "records every attempt, whatever it was about",
    async run({ store }) {
      await store.note((note) => note.addAudit(sample.audit({ target: "a\0b\ud800c", why: "\0" })));
      deepStrictEqual(await store.read((view) => view.audit()), [
        sample.audit({ target: "a\ufffdb\ufffdc", why: "\ufffd" }),
      ]);
    },
  },
];
