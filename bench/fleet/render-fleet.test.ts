import { expect, it } from "vitest";
import { renderFleet } from "./render-fleet.ts";

it("reports rates and CPU time by nodes, and what a million a second would need", () => {
  const page = renderFleet({
    suite: "fleet",
    cores: 2,
    by_nodes: { 4: { checks_per_s: 400_000, node_cpu_us_per_check: 3.1, valkey_cpu_us_per_check: 0.01 } },
    cores_for_a_million_per_s: 3.11,
  });
  expect(page).toContain("| 4 | 400 000 | 3.10 | 0.010 |");
  expect(page).toContain("would keep 3.1 cores of nodes and Valkey busy");
});
