import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { runQuickly } from "./measure/run-quickly.ts";

const number = expect.any(Number);

it("npm run bench -- peers measures Sluice alone if no peer is installed, says so, and prints it last as one JSON object", {
  timeout: 300_000,
}, async () => {
  const cache = mkdtempSync(path.join(tmpdir(), "sluice-no-peers-"));
  onTestFinished(() => rmSync(cache, { recursive: true, force: true }));
  const { contests, memory, missing, versions, ...result } = await runQuickly("peers", {
    args: ["--no-install"],
    env: { XDG_CACHE_HOME: cache },
  });
  expect(result).toEqual({ suite: "peers", cores: number, rounds: 1, seconds: 1, keys: 1_000, took_s: number });
  expect(Object.keys(versions as object)).toEqual(["sluice", "Valkey", "h2load"]);
  expect(missing).toEqual({
    envoy_ratelimit: expect.stringContaining("envoyproxy/ratelimit has not been built yet"),
    gubernator: expect.stringContaining("gubernator has not been built yet"),
    throttlecrab: expect.stringContaining("throttlecrab has not been built yet"),
  });

  const measured = {
    decisions_per_s: number,
    server_cpu_us: number,
    store_cpu_us: number,
    p50_ms: number,
    p99_ms: number,
  };
  const alone = { paced_per_s: number, servers: { sluice: measured } };
  expect(contests).toEqual({
    rls_valkey: { paced_per_s: number, servers: { sluice: measured, sluice_leased: measured } },
    rls_memory: alone,
    grpc_memory: alone,
    grpc_batch_memory: alone,
    http_memory: alone,
    resp_memory: alone,
    resp_pipelined_memory: alone,
  });
  const kept = (counters: string) => ({
    counters,
    before_mib: number,
    after_mib: number,
    store_before_mib: number,
    store_after_mib: number,
    bytes_per_key: number,
  });
  expect(memory).toEqual({ sluice_memory: kept("memory"), sluice_valkey: kept("valkey") });
});
