import { renderCount, renderTable } from "../measure/write-section.ts";

export interface FleetResult {
  readonly suite: "fleet";
  readonly cores: number;
  readonly by_nodes: Readonly<
    Record<
      string,
      {
        readonly checks_per_s: number;
        readonly node_cpu_us_per_check: number;
        readonly valkey_cpu_us_per_check: number;
      }
    >
  >;
  /** Cores of nodes and Valkey that a million decisions a second keep busy, without those of the callers. */
  readonly cores_for_a_million_per_s: number;
}

/** The section of docs/benchmarks.md. */
export function renderFleet({ cores, by_nodes, cores_for_a_million_per_s }: FleetResult): string {
  const rows = Object.entries(by_nodes).map(([nodes, one]) => [
    nodes,
    renderCount(one.checks_per_s),
    one.node_cpu_us_per_check.toFixed(2),
    one.valkey_cpu_us_per_check.toFixed(3),
  ]);
  const heads = ["nodes", "decisions per second", "µs of CPU of a node", "µs of CPU of Valkey"];
  return [
    `Measured on a machine with ${cores} cores.`,
    "",
    renderTable(heads, rows),
    "",
    `By the last row, a million decisions per second would keep ${cores_for_a_million_per_s.toFixed(1)} cores of nodes and Valkey busy,`,
    "and callers need cores as well.",
    "That is computed, not measured: this machine has too few cores for such a rate.",
  ].join("\n");
}
