import { expect, it } from "vitest";
import { runQuickly } from "./measure/run-quickly.ts";

const number = expect.any(Number);

it("npm run bench -- latency measures every protocol and kind of counters, and prints it last as one JSON object", {
  timeout: 300_000,
}, async () => {
  const measured = { half_load_per_s: number, p50_ms: number, p99_ms: number, p999_ms: number, degraded_share: number };
  const byProtocol = { grpc: measured, http: measured, resp: measured };
  expect(await runQuickly("latency")).toEqual({
    suite: "latency",
    memory: byProtocol,
    valkey: byProtocol,
    valkey_leases: byProtocol,
    valkey_deadline_3ms: byProtocol,
  });
});
