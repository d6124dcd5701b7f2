import { expect, it } from "vitest";
import { createLeaseLog, type LeaseLog } from "./lease-log.ts";

let now = 0;
let lines: { level: string; event: string; fields: object }[];

function open(): LeaseLog {
  now = 0;
  lines = [];
  const say =
    (level: string) =>
    (event: string, fields: object = {}): number =>
      lines.push({ level, event, fields });
  return createLeaseLog({ info: say("info"), warn: say("warn") }, 60_000, () => now);
}

const calm = { leases: 5, tokens: 70, stale: 0 };
const stale = { leases: 5, tokens: 40, stale: 3 };

it("reports once that leases are spent past their time, and once how long that took", () => {
  const log = open();
  log.look(calm, true);
  log.look(calm, false);
  expect(lines).toEqual([]);
  for (const at of [1_000, 2_000, 3_000]) {
    now = at;
    log.look(stale, false);
  }
  expect(log.staleForMs).toBe(2_000);
  expect(lines).toEqual([
    {
      level: "warn",
      fields: { leases: 5, stale: 3, tokens: 40, budgetMs: 60_000 },
      event: "leases.spent_beyond_time",
    },
  ]);
  for (const at of [9_000, 12_000, 13_000]) {
    now = at;
    log.look(calm, true);
  }
  expect(log.staleForMs).toBeUndefined();
  expect(lines.slice(1)).toEqual([{ level: "info", fields: { afterMs: 8_000 }, event: "leases.renewed" }]);
});

it("reports when leases are used up before the counters are back, and nothing more until they are", () => {
  const log = open();
  log.look(stale, false);
  now = 60_000;
  log.look({ leases: 0, tokens: 0, stale: 0 }, false);
  log.look(stale, false);
  log.look(calm, false);
  expect(lines.slice(1)).toEqual([{ level: "warn", fields: { afterMs: 60_000 }, event: "leases.used_up" }]);
  log.look(calm, true);
  log.look(stale, false);
  expect(lines).toHaveLength(3);
});

it("reports no more if some answers are lost, and leases become stale and are renewed again and again", () => {
  const log = open();
  for (now = 0; now < 600_000; now += 1_000) log.look(now % 3_000 === 0 ? stale : calm, true);
  expect(lines).toHaveLength(1);
  for (; now <= 606_000; now += 1_000) log.look(calm, true);
  expect(lines.slice(1)).toMatchObject([{ level: "info", fields: { afterMs: 598_000 } }]);
});
