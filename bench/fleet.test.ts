import { expect, it } from "vitest";
import { runQuickly } from "./measure/run-quickly.ts";

const number = expect.any(Number);

it("npm run bench -- fleet measures one, two and four nodes, and prints it last as one JSON object", {
  timeout: 300_000,
}, async () => {
  const measured = { checks_per_s: number, node_cpu_us_per_check: number, valkey_cpu_us_per_check: number };
  expect(await runQuickly("fleet")).toEqual({
    suite: "fleet",
    cores: number,
    by_nodes: { 1: measured, 2: measured, 4: measured },
    cores_for_a_million_per_s: number,
  });
});
