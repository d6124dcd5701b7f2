import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { flavors } from "@sluice/test-servers";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);
const file = path.join(import.meta.dirname, "redis.ts");

async function bench(...args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  return run(process.execPath, ["-C", "source", file, ...args]);
}

const cost = { redis_us_per_check: expect.any(Number), node_us_per_check: expect.any(Number) };
const measurements = { checks_per_s: expect.any(Number), ...cost };
const latencies = { p50_ms: expect.any(Number), p99_ms: expect.any(Number), p999_ms: expect.any(Number) };

/** Every number in a value, however deep, with its path. */
function listNumbers(value: unknown, at = ""): readonly (readonly [string, unknown])[] {
  if (typeof value !== "object" || value === null) return [[at, value]];
  return Object.entries(value).flatMap(([key, inner]) => listNumbers(inner, `${at}.${key}`));
}

describe("npm run bench -- redis", () => {
  it.each(flavors)(
    "measures everything on %s, and prints it last as one JSON object",
    { timeout: 300_000 },
    async (flavor) => {
      const { stdout } = await bench("--quick", "--json", "--flavor", flavor);
      const { suite, ...result } = JSON.parse(stdout.trimEnd().split("\n").at(-1)!);
      expect(suite).toBe("redis");
      expect(result).toEqual({
        ...measurements,
        ...latencies,
        checks_per_call: expect.any(Number),
        bytes_per_key: expect.any(Number),
        in_flight_32: latencies,
        behind: measurements,
        denied: measurements,
        three_windows: measurements,
        fixed_window: measurements,
        sliding_window: measurements,
        cross_slot: { ...measurements, checks_per_call: expect.any(Number) },
        cluster: { ...measurements, checks_per_call: expect.any(Number) },
        single_evalsha: { ...measurements, ...latencies, in_flight_32: latencies },
        ratio: {
          throughput_vs_single_evalsha: expect.any(Number),
          fixed_window_redis_cpu_vs_gcra: expect.any(Number),
          sliding_window_redis_cpu_vs_gcra: expect.any(Number),
          redis_cpu_vs_single_evalsha: expect.any(Number),
          throughput_vs_rate_limiter_flexible: expect.any(Number),
          throughput_vs_rate_limit_redis: expect.any(Number),
        },
      });
      // A number that is not finite is written as null.
      expect(listNumbers(result).filter(([, number]) => !Number.isFinite(number) || Number(number) <= 0)).toEqual([]);
    },
  );

  it("refuses an unknown server, before it starts one", async () => {
    await expect(bench("--flavor", "memcached")).rejects.toMatchObject({
      code: 2,
      stdout: "",
      stderr: 'There is no flavor "memcached"; write --flavor valkey or --flavor redis.\n',
    });
  });
});
