import { openPolicyStore } from "@sluice/sql";
import { expect, it } from "vitest";
import { startRollout } from "../rollouts/start-rollout.ts";
import { endRollout } from "../rollouts/steer-rollout.ts";
import { putRollout } from "./put-rollout.ts";

it.each([
  [1, true],
  [5, false],
])("deletes a new policy with its rollout at version %d: %s", async (version, deleted) => {
  const store = await openPolicyStore({ url: "sqlite::memory:" });
  const started = startRollout(
    { id: "r1", policy: "new", fromVersion: 0, toVersion: 1, by: "user", author: "ada" },
    1_000,
  );
  const document = '{"id":"new"}';
  await store.change(async (change) => {
    const record = { id: "new", version, document, owner: undefined, ruleKey: undefined, deleted: false, changedMs: 0 };
    await change.putPolicy(record);
    await putRollout(change, endRollout(started, "cancelled", 2_000, "no more"), {
      author: "ada",
      why: "",
      atMs: 2_000,
    });
  });
  expect((await store.read((view) => view.policy("new")))?.deleted).toBe(deleted);
  await store.close();
});
