import { expect, it } from "vitest";
import type { MeasuredServer } from "./measure-contest.ts";
import { type PeersResult, renderPeers } from "./render-peers.ts";

const measured = (server_cpu_us: number, store_cpu_us = 0): MeasuredServer => ({
  decisions_per_s: 12_345,
  server_cpu_us,
  store_cpu_us,
  p50_ms: 0.5,
  p99_ms: 2,
});

const result: PeersResult = {
  suite: "peers",
  cores: 2,
  rounds: 5,
  seconds: 2,
  versions: { sluice: "this one", gubernator: "github.com/mailgun/gubernator/v2 v2.4.0" },
  missing: {},
  contests: {
    rls_valkey: { paced_per_s: 1_000, servers: { envoy_ratelimit: measured(40, 5), sluice: measured(10, 5) } },
    resp_memory: { paced_per_s: 1_000, servers: { sluice: measured(4), throttlecrab: measured(2) } },
  },
  keys: 1_000_000,
  memory: {
    sluice_valkey: {
      counters: "valkey",
      before_mib: 100,
      after_mib: 110,
      store_before_mib: 12,
      store_after_mib: 130,
      bytes_per_key: 134,
    },
  },
  took_s: 400,
};

it("compares Sluice with the best of the others, whichever takes less CPU time", () => {
  const page = renderPeers(result);
  expect(page).toContain("envoyproxy/ratelimit takes 3.0 times the CPU time of Sluice.");
  expect(page).toContain("Sluice takes 2.0 times the CPU time of throttlecrab.");
  expect(page).toContain("| throttlecrab | 12 345 | 2.00 | 0.50 | 2.00 |");
  expect(page).toContain("| Sluice | 12 345 | 10.00 | 5.00 | 0.50 | 2.00 |");
});

it("says which releases were measured, and what was not", () => {
  const page = renderPeers(result);
  expect(page).toContain("| gubernator | github.com/mailgun/gubernator/v2 v2.4.0 |");
  expect(page).toContain("A later release, github.com/gubernator-io/gubernator/v2 v2.13.0, could not be verified");
  expect(page).toContain("limitador-server is not measured:");
});

it("reports memory of the server and of the store", () => {
  expect(renderPeers(result)).toContain("| Sluice, on Valkey | 100 → 110 | 12 → 130 | 134 |");
});
