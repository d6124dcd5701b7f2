import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { PolicyStoreUnavailable } from "../../errors.ts";
import { sample } from "../sample-records.ts";
import type { PolicyStoreCase } from "./policy-store-case.ts";

/** One clock, one leader, one transaction at a time, and an end. */
export const lifetimeCases: readonly PolicyStoreCase[] = [
  {
    name: "returns the time of the same clock to all nodes",
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
    name: "lets one node lead, and another once that node stops asking",
    async run({ store, openAnother }) {
      const other = (await openAnother?.()) ?? store;
      strictEqual(await store.lead("n1", 60_000), true);
      strictEqual(await other.lead("n2", 60_000), false);
      strictEqual(await store.lead("n1", 60_000), true);
      strictEqual(await store.lead("n1", 1), true);
      await sleep(50);
      const both = await Promise.all([store.lead("n3", 60_000), other.lead("n2", 60_000)]);
      deepStrictEqual(both.toSorted(), [false, true]);
      // A leader that asks for 0 ms has resigned.
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
    name: "is unavailable once it is closed, and can be closed again",
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
    name: "finishes work that began before it was closed",
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
