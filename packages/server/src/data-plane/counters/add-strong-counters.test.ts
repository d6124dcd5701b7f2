import { MemoryCounters } from "sluice";
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
