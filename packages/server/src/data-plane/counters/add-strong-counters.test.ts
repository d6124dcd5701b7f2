import { createLimiter, MemoryCounters } from "sluice";
import { expect, it } from "vitest";
import { parseSettings } from "../../settings/parse-settings.ts";
import { createRecordingLog } from "../../testing/recording-log.ts";
import { openCounters } from "./open-counters.ts";

it("leaves counters in memory to decide at once, and to be recorded, until a policy is strong", async () => {
  const reading = parseSettings({ SLUICE_STRONG_COUNTERS_URL: "sqlite::memory:" }, {});
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const log = createRecordingLog(() => undefined);
  const counters = await openCounters({ settings: reading.settings, runtime: undefined, log });
  expect([counters.store.local, counters.deciding]).toEqual([true, expect.any(MemoryCounters)]);
  counters.store.useStrong?.(true);
  expect([counters.store.local, counters.deciding]).toEqual([false, undefined]);
  counters.store.useStrong?.(false);
  expect([counters.store.local, counters.deciding]).toEqual([true, expect.any(MemoryCounters)]);
  counters.stop();
  await counters.store.close();
});

it("logs why the database does not answer, without its password", async () => {
  const reading = parseSettings({ SLUICE_STRONG_COUNTERS_URL: "postgres://ada:a-secret@127.0.0.1:1/x" }, {});
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const lines: string[] = [];
  const log = createRecordingLog((line) => lines.push(JSON.stringify(line)));
  const counters = await openCounters({ settings: reading.settings, runtime: undefined, log });
  const policies = [
    { id: "bills", limits: [{ by: ["user"], windows: ["3/d"] }], counters: "strong", on_failure: "closed" },
  ];
  const limiter = createLimiter({ policies: { policies }, counters: counters.store });
  for (let i = 0; i < 5; i += 1) await limiter.check({ dimensions: { user: "ada" }, deadlineMs: 10_000 });
  expect(lines.filter((line) => line.includes("strong.breaker_opened"))).toEqual([
    expect.stringContaining("ECONNREFUSED"),
  ]);
  expect(lines.join("\n")).not.toContain("a-secret");
  counters.stop();
  await counters.store.close();
});
