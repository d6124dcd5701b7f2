import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { VersionTaken } from "../../errors.ts";
import type { AuditRecord } from "../../records.ts";
import { sample } from "../sample-records.ts";
import { ids, type PolicyStoreCase } from "./policy-store-case.ts";

/** Lists are in order, and are read a page at a time. */
export const listCases: readonly PolicyStoreCase[] = [
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
    name: "finds subjects by tier, and counts them by dimension",
    async run({ store }) {
      await store.change(async (change) => {
        for (const value of ["a", "b", "c", "d"])
          await change.putSubject(sample.subject({ value, tier: value < "c" ? "pro" : undefined }));
        await change.putSubject(sample.subject({ dimension: "tenant", value: "a", tier: "pro" }));
        await change.putSubject(sample.subject({ dimension: "tenant", value: "b", tier: "Pro" }));
      });
      await store.read(async (view) => {
        const counts = await view.countTiers();
        const order = counts.toSorted((one, other) => Number(one.tier > other.tier) - Number(one.tier < other.tier));
        deepStrictEqual(order, [
          { tier: "Pro", dimension: "tenant", subjects: 1 },
          { tier: "pro", dimension: "tenant", subjects: 1 },
          { tier: "pro", dimension: "user", subjects: 2 },
        ]);
        const values = async (page: Parameters<typeof view.subjects>[0]) =>
          (await view.subjects(page)).map(({ value }) => value);
        deepStrictEqual(await values({ dimension: "user", tier: "pro" }), ["a", "b"]);
        deepStrictEqual(await values({ dimension: "user", tier: "pro", after: "a" }), ["b"]);
        deepStrictEqual(await values({ dimension: "user", tier: "Pro" }), []);
        deepStrictEqual(await values({ tier: "pro" }), ["a", "a", "b"]);
      });
    },
  },
  {
    name: "keeps one disabling of a policy and one block of a subject, until they are ended or have ended",
    async run({ store }) {
      const early = { untilMs: 1_000 };
      const late = { untilMs: 2_000 };
      await store.change(async (change) => {
        await change.putDisabled(sample.disabled({ policy: "b", ...early }));
        await change.putDisabled(sample.disabled({ policy: "a", mode: "shadow", ...early }));
        await change.putDisabled(sample.disabled({ policy: "a", ...late }));
        await change.putBlock(["v", "w"].map((value) => sample.block({ value, ...early })));
        await change.putBlock(sample.block({ value: "v", policies: ["p", "q"], ...late }));
        await change.putBlock(sample.block({ dimension: "ip", value: "v", ...late }));
      });
      const [vOfIp, v, w] = [
        sample.block({ dimension: "ip", value: "v", ...late }),
        sample.block({ value: "v", policies: ["p", "q"], ...late }),
        sample.block({ value: "w", ...early }),
      ];
      const a = sample.disabled({ policy: "a", ...late });
      await store.read(async (view) => {
        deepStrictEqual(await view.disabled(), [a, sample.disabled({ policy: "b", ...early })]);
        deepStrictEqual(await view.blocks(), [vOfIp, v, w]);
        deepStrictEqual(await view.blocks("user"), [v, w]);
        deepStrictEqual(await view.blocks("user", "w"), [w]);
      });
      await store.change(async (change) => {
        strictEqual(await change.deleteEndedExceptions(1_001), 2);
        strictEqual(await change.deleteDisabled("b"), false);
        strictEqual(await change.deleteBlock("user", "w"), false);
        strictEqual(await change.deleteBlock("user", "v"), true);
        deepStrictEqual([await change.disabled(), await change.blocks()], [[a], [vOfIp]]);
        strictEqual(await change.deleteDisabled("a"), true);
        deepStrictEqual(await change.disabled(), []);
      });
    },
  },
  {
    name: "returns versions as they were written, newest first",
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
    name: "leaves deleted policies out of lists, and finds them by their id",
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
    name: "finds audit records by each of their fields, newest first, a page at a time",
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
        // Adding it again changes nothing.
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
      strictEqual(await store.note((note) => note.deleteAuditBefore(30, 1)), 1);
      strictEqual(await store.note((note) => note.deleteAuditBefore(30, 5)), 1);
      strictEqual(await store.note((note) => note.deleteAuditBefore(30, 5)), 0);
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
];
