import type { LeasesBody, StatusBody } from "@sluice/protocol/http";
import { expect, it } from "vitest";
import { renderStatus } from "./status.ts";

const off = { addresses: [], connections: 0, turned_away: 0 };
const digest = "ab12";
const body: StatusBody = {
  ...{ status: "degraded", detail: "the policy store cannot be reached", version: "1.0.0", node: "v24", pid: 7 },
  ...{ started_at_ms: 0, uptime_ms: 5_000 },
  policies: {
    ...{ generation: 3, count: 2, state: "current", source: "none", digest },
    ...{ taken_up_at_ms: 0, age_ms: 4_000, problem_count: 0, problems: [] },
  },
  counters: { kind: "memory", counters: 1, max_counters: 10, bytes: 99 },
  queue: { pending: 0, max_pending: 10 },
  shed: { pending: 0, rate: 0 },
  protocols: { http: off, grpc: off, resp: off, admin: off },
};

it("tells how a server stands to the policy store, what is overridden, and of the kill switch", () => {
  const text = renderStatus({
    ...body,
    store: {
      ...{ kind: "postgres", at: "postgres://db:5432/sluice", state: "away", reason: "connection refused" },
      ...{ generation: 7, newest_generation: 8, source: "snapshot", taken_up_at_ms: 0, digest },
      push: { kind: "postgres", connected: false },
      kill_switch: { mode: "open", until_ms: Date.UTC(2027, 0, 2, 3), reason: "a drill", author: "al" },
      disabled: [{ policy: "search", mode: "allow", until_ms: 1_767_225_600_000, reason: "denies all" }],
      blocked: 2,
      ...{ problem_count: 1, problems: ["policies.x: is not JSON"], precedence: "files" },
      ...{ overridden_count: 1, overridden: ["policy login"], node_id: "n1", node_name: "a" },
    },
  });
  expect(text).toContain(`
store     postgres://db:5432/sluice, generation 7 of 8, from the snapshot, away, changes not heard at once
          connection refused
          policies.x: is not JSON
          in files and store, files win: policy login
          policy search is disabled (allow) until 2026-01-01T00:00:00.000Z: denies all
          2 subjects are blocked
          kill switch open until 2027-01-02T03:00:00.000Z: a drill
counters  in memory, 1 of at most 10
`);
});

it("says nothing of a store where there is none", () => {
  expect(renderStatus(body)).not.toMatch(/^store/m);
});

it("shows leases, and those that have expired", () => {
  const counters = { kind: "redis", at: "redis://a:1", ready: true, waiting: 0, in_flight: 0, shards: [] } as const;
  const renderText = (leases: LeasesBody): string => renderStatus({ ...body, counters: { ...counters, leases } });
  expect(renderText({ held: 12, tokens: 340, stale: 0 })).toContain(`
counters  redis://a:1, 0 waiting
leases    12 held, 340 left to spend
waiting`);
  expect(renderText({ held: 12, tokens: 340, stale: 3, stale_for_ms: 12_345 })).toContain(
    "leases    12 held, 340 left to spend; 3 beyond their time for 12s, because the counters do not answer\n",
  );
  expect(renderStatus({ ...body, counters })).not.toMatch(/^leases/m);
});

it("shows the database of strong counters once it is used", () => {
  const used = { at: "postgres://db:5432/sluice", waiting: 2, calls: 90, transactions: 30, failed_transactions: 1 };
  expect(renderStatus({ ...body, strong: { ...used, breaker: "closed" } })).toContain(
    "strong    postgres://db:5432/sluice, breaker closed, 2 waiting, 1 failed transactions",
  );
  expect(renderStatus(body)).not.toContain("strong");
});
