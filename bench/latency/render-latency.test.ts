import { expect, it } from "vitest";
import { type MeasuredLatency, type Protocol, renderLatency } from "./render-latency.ts";

const measured = (p999_ms: number, degraded_share = 0): Record<Protocol, MeasuredLatency> => {
  const one = { half_load_per_s: 12_000, p50_ms: 0.2, p99_ms: 1.4, p999_ms, degraded_share };
  return { grpc: one, http: one, resp: one };
};

it("says where the goal is missed, and what a short deadline costs", () => {
  const page = renderLatency({
    memory: measured(3.9),
    valkey: measured(4.1),
    valkey_leases: measured(3),
    valkey_deadline_3ms: measured(3, 0.0123),
  });
  expect(page).toContain("| in memory | gRPC | 12 000 | 0.20 | 1.40 | 3.90 | 0 % | yes |");
  expect(page).toContain("| on Valkey, without leases | HTTP | 12 000 | 0.20 | 1.40 | 4.10 | 0 % | no: p99.9 |");
  expect(page).toContain("1.230 % over gRPC, 1.230 % over HTTP and 1.230 % over RESP");
});
