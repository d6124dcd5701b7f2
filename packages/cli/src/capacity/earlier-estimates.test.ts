import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readCapacityInput } from "../commands/capacity-options.ts";
import { defaultFigures, transportFigures } from "./default-figures.ts";
import { compareEstimates } from "./earlier-estimates.ts";

const rows = compareEstimates(readCapacityInput({}, undefined));
const find = (name: string): (typeof rows)[number] => rows.find(({ quantity }) => quantity === name)!;

describe("estimates of earlier designs", () => {
  it("are computed again from their own inputs", () => {
    const computed = rows.map(({ quantity, computed: value }) => [quantity, Number(value.toPrecision(5))]);
    expect(Object.fromEntries(computed)).toMatchObject({
      keys: 40_500_000,
      "memory of all copies": 15.795,
      "shards without leases": 400,
      "shards with 80 % local": 80,
      "the same, with the calls that refill leases": 144,
      "pods of a central service": 80,
      "traffic to the store": 14.4,
      "lease calls for a whale, of a shard at its target": 133.33,
      "over-admission for a whale": 10_000,
      "passed while failing open": 96.993,
      "passed while failing closed": 96.893,
      counters: 32,
      "10 M buckets": 1.5,
    });
  });

  it("find a million checks six times as dear as was said, and far below half a dollar", () => {
    const { said, computed, here } = find("price of a million checks");
    expect(computed / said).toBeCloseTo(6.37, 1);
    expect(here).toBeLessThan(0.5);
  });

  it("lease the same number of tokens at the same bound", () => {
    expect(find("over-admission for a whale").here).toBe(10_000);
  });
});

describe("default figures", () => {
  const page = readFileSync(new URL("../../../../docs/benchmarks.md", import.meta.url), "utf8");
  /** A cell of the table under a heading. */
  const cell = (heading: string, name: string, column: number): number => {
    const section = page.slice(page.indexOf(`### ${heading}`));
    const line = section.split("\n").find((one) => one.startsWith(`| ${name} |`))!;
    return Number(line.split("|")[column + 1]!.replaceAll(" ", ""));
  };
  const cpu = 2;

  it.each([
    ["Envoy's rate limit service, counters in memory", transportFigures.grpc.server_us_per_check],
    ["gRPC, 64 decisions in each call, counters in memory", transportFigures["grpc-batch"].server_us_per_check],
    ["HTTP and JSON, counters in memory", transportFigures.http.server_us_per_check],
    ["RESP, counters in memory", transportFigures.resp.server_us_per_check],
    ["RESP with pipelines, counters in memory", transportFigures["resp-pipeline"].server_us_per_check],
  ])("are within half of what docs/benchmarks.md measured: %s", (heading, figure) => {
    const measured = cell(heading, "Sluice", cpu);
    expect(figure / measured).toBeGreaterThan(1 / 1.5);
    expect(figure / measured).toBeLessThan(1.5);
  });

  it("of a take are within half of what docs/benchmarks.md measured", () => {
    const exact = "Envoy's rate limit service, counters on one Valkey";
    const take = cell(exact, "Sluice", cpu) - cell("Envoy's rate limit service, counters in memory", "Sluice", cpu);
    expect(defaultFigures.server_us_per_take / take).toBeGreaterThan(1 / 1.5);
    expect(defaultFigures.server_us_per_take / take).toBeLessThan(1.5);
    const ofStore = cell(exact, "Sluice", cpu + 1);
    expect(defaultFigures.store_us_per_take / ofStore).toBeGreaterThan(1 / 1.5);
    expect(defaultFigures.store_us_per_take / ofStore).toBeLessThan(1.5);
  });
});
