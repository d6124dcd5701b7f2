import { openPolicyStore } from "@sluice/sql";
import { expect, it } from "vitest";
import { createRecordingLog } from "../../testing/recording-log.ts";
import { admin } from "../testing/open-test-control.ts";
import { createRefusals } from "./refusals.ts";

it("stores a bounded number of refusals a minute and counts the rest, even if the clock is set back", async () => {
  const store = await openPolicyStore({ url: "sqlite::memory:" });
  let nowMs = 1_000_000;
  const log = createRecordingLog(() => undefined);
  const refusals = createRefusals({ store, log, nowMs: () => nowMs, perMinute: 2 });
  const refuse = (target: string) => refusals.add(admin, { action: "policy.put", kind: "policy", target }, "no");
  for (const target of ["a", "b", "c", "d"]) refuse(target);
  nowMs -= 500_000;
  refuse("e");
  await refusals.settled();
  const kept = await store.read((view) => view.audit());
  expect(new Set(kept.map(({ target, after }) => `${target}${after ?? ""}`))).toEqual(
    new Set(["a", "b", '{"count":2}', "e"]),
  );
  await store.close();
});
