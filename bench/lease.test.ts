import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const run = promisify(execFile);
const file = path.join(import.meta.dirname, "lease.ts");

interface Overshoot {
  readonly stated: number;
  readonly worst_seen: number;
}

interface ScaledRow {
  readonly nodes: number;
  readonly leases: boolean;
  readonly overshoot: Overshoot;
  readonly admitted_share: number;
}

const number = expect.any(Number);
const overshoot = { stated: number, worst_seen: number };
const row = {
  decisions_per_s: number,
  decisions_per_cpu_s: number,
  store_calls_per_decision: number,
  store_us_per_decision: number,
  overshoot,
  admitted_share: number,
};

it("npm run bench -- lease measures everything, and prints it last as one JSON object", {
  timeout: 180_000,
}, async () => {
  const { stdout } = await run(process.execPath, ["-C", "source", file, "--quick", "--json"]);
  const result = JSON.parse(stdout.trimEnd().split("\n").at(-1)!);
  expect(result).toEqual({
    suite: "lease",
    in_flight: 16,
    decisions_per_cpu_s: number,
    store_calls_per_1000: number,
    whale: { local_share: number, store_calls_per_1000: number },
    local_share: number,
    p50_us: number,
    p99_us: number,
    overshoot,
    admitted_share: number,
    ratio: { vs_exact: number, vs_rate_limiter_flexible_redis: number },
    vs_exact_by_in_flight: Object.fromEntries(
      [1, 16, 256].map((inFlight) => [
        inFlight,
        { node: number, with_store: number, leased_per_cpu_s: number, exact_per_cpu_s: number },
      ]),
    ),
    scaling: [1, 2].flatMap((nodes) => [true, false].map((leases) => ({ ...row, nodes, leases }))),
  });

  // Leases took part: without them the store makes every decision.
  for (const share of [result.local_share, result.whale.local_share]) {
    expect(share).toBeGreaterThan(0);
    expect(share).toBeLessThanOrEqual(1);
  }
  expect(result.p50_us).toBeGreaterThan(0);
  expect(result.p99_us).toBeGreaterThanOrEqual(result.p50_us);
  const { ratio } = result;
  for (const value of [result.decisions_per_cpu_s, ...Object.values(ratio)]) expect(value).toBeGreaterThan(0);

  const rows: readonly ScaledRow[] = result.scaling;
  for (const { overshoot: seen } of rows) expect(seen.worst_seen).toBeLessThanOrEqual(seen.stated);
  const leased = rows.filter(({ leases }) => leases);
  const nearness = ({ stated, worst_seen }: Overshoot): number => worst_seen / stated;
  expect(nearness(result.overshoot)).toBe(Math.max(...leased.map((one) => nearness(one.overshoot))));
  expect(result.admitted_share).toBe(Math.min(...leased.map((one) => one.admitted_share)));
});

it("npm run bench -- lease refuses an unknown source of the whale's limit, before it starts a server", async () => {
  await expect(run(process.execPath, ["-C", "source", file, "--whale", "aquarium"])).rejects.toMatchObject({
    code: 2,
    stdout: "",
    stderr: '--whale is one of subject, tier, policy, not "aquarium".\n',
  });
});
