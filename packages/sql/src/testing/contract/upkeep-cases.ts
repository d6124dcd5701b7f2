import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { sample } from "../sample-records.ts";
import { ids, type PolicyStoreCase } from "./policy-store-case.ts";

/** Replacing and deleting records. */
export const upkeepCases: readonly PolicyStoreCase[] = [
  {
    name: "stores the latest use of a token, and changes nothing else",
    async run({ store }) {
      await store.change((change) => change.putToken(sample.token()));
      for (const usedMs of [5, 9, 7]) await store.note((note) => note.touchToken("t1", usedMs));
      await store.note((note) => note.touchToken("unknown", 5));
      deepStrictEqual(await store.read((view) => view.tokens()), [sample.token({ lastUsedMs: 9 })]);
    },
  },
  {
    name: "sets a node's counts, and does not add to those reported before",
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
      strictEqual(await store.note((note) => note.deleteTalliesBefore(11)), 13);
      deepStrictEqual(await store.read((view) => view.tallies("r1")), [other]);
    },
  },
  {
    name: "deletes nodes one by one, and nodes not seen for long",
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
      strictEqual(await store.note((note) => note.deleteNodesSeenBefore(20)), 1);
      deepStrictEqual(ids(await store.read((view) => view.nodes())), ["n2"]);
    },
  },
  {
    name: "stores a custom limit as well as an override, and replaces each only by its own kind",
    async run({ store }) {
      const custom = sample.subjectLimit({ untilMs: undefined, windows: '["1/s"]' });
      const override = sample.subjectLimit({ untilMs: 50, windows: '["2/s"]' });
      await store.change(async (change) => {
        await change.putSubject(sample.subject());
        for (const record of [{ ...custom, windows: "[]" }, { ...override, windows: "[]" }, custom, override])
          await change.putSubjectLimit(record);
      });
      deepStrictEqual(await store.read((view) => view.subjectLimits()), [custom, override]);
      strictEqual(await store.change((change) => change.deleteEndedSubjectLimits(51)), 1);
      deepStrictEqual(await store.read((view) => view.subjectLimits()), [custom]);
    },
  },
  {
    name: "deletes tokens by the beginning of their name, once they have expired or were revoked",
    async run({ store }) {
      const [kept, ended] = [
        { expiresMs: 50, revokedMs: undefined },
        { expiresMs: 49, revokedMs: undefined },
      ];
      const tokens = [
        ...[
          sample.token({ id: "a", name: "console/a", ...kept }),
          sample.token({ id: "b", name: "console/b", ...ended }),
        ],
        sample.token({ id: "c", name: "console/c", ...kept, revokedMs: 49 }),
        ...[sample.token({ id: "d", name: "Console/d", ...ended }), sample.token({ id: "e", name: "ops", ...ended })],
        sample.token({ id: "f", name: "console/f", expiresMs: undefined, revokedMs: undefined }),
      ];
      await store.change(async (change) => {
        for (const token of tokens) await change.putToken({ ...token, sha256: token.id.repeat(64) });
      });
      strictEqual(await store.change((change) => change.deleteEndedTokens("console/", 50)), 2);
      const left = await store.read((view) => view.tokens());
      deepStrictEqual(
        left.map(({ name }) => name),
        ["console/a", "Console/d", "ops", "console/f"],
      );
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
    name: "deletes overrides that have ended, and no custom limit",
    async run({ store }) {
      await store.change(async (change) => {
        for (const [limit, untilMs] of [
          ["a", 10],
          ["b", 20],
          ["c", undefined],
        ] as const)
          await change.putSubjectLimit(sample.subjectLimit({ limit, untilMs }));
      });
      strictEqual(await store.change((change) => change.deleteEndedSubjectLimits(20)), 1);
      deepStrictEqual(
        (await store.read((view) => view.subjectLimits())).map(({ limit }) => limit),
        ["b", "c"],
      );
    },
  },
  {
    name: "returns the kill switch with the pulse, until it is off",
    async run({ store }) {
      await store.change((change) => change.putKillSwitch(sample.killSwitch()));
      deepStrictEqual((await store.readPulse()).killSwitch, sample.killSwitch());
      await store.change((change) => change.putKillSwitch(sample.killSwitch({ mode: "open", untilMs: 9 })));
      deepStrictEqual((await store.readPulse()).killSwitch, sample.killSwitch({ mode: "open", untilMs: 9 }));
      await store.change((change) => change.putKillSwitch(undefined));
      strictEqual((await store.readPulse()).killSwitch, undefined);
    },
  },
];
