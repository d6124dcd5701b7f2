import { expect, it } from "vitest";
import { runQuickly } from "./measure/run-quickly.ts";

it("npm run bench -- usage measures size and times, and prints them last as one JSON object", {
  timeout: 180_000,
}, async () => {
  const ms = expect.any(Number);
  expect(await runQuickly("usage")).toEqual({
    ...{ suite: "usage", policies: 100, subjects: 500, rows: 9_600, minutes: 8, days: 8 },
    bytes: { per_row: expect.any(Number), heap_per_row: expect.any(Number), total: expect.any(Number) },
    rows_per_day: { all_minutes: 879_000, tenth_of_minutes: 92_760 },
    retention_gb: { all_minutes: ms, tenth_of_minutes: ms, hundredth_of_minutes: ms },
    ms: {
      ...{ load: ms, flush_new: ms, flush: ms, roll_up: ms, roll_up_again: ms, delete_minute: ms, delete_day: ms },
      ...{ subject_month_by_day: ms, policy_hour_by_minute: ms, subjects_of_a_day: ms, all_by_day: ms },
    },
  });
});
