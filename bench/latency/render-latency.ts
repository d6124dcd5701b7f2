import { renderCount, renderTable } from "../measure/write-section.ts";

export type Protocol = "grpc" | "http" | "resp";
export type Setup = "memory" | "valkey" | "valkey_leases" | "valkey_deadline_3ms";

export interface MeasuredLatency {
  readonly half_load_per_s: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly p999_ms: number;
  readonly degraded_share: number;
}

export type LatencyResult = Readonly<Record<Setup, Readonly<Record<Protocol, MeasuredLatency>>>>;

/** What callers may wait, in milliseconds. */
const goal = { p50_ms: 0.3, p99_ms: 1.5, p999_ms: 4 };

const setupTitles: Readonly<Record<Setup, string>> = {
  memory: "in memory",
  valkey: "on Valkey, without leases",
  valkey_leases: "on Valkey, with leases",
  valkey_deadline_3ms: "on Valkey, without leases, `deadline: 3ms`",
};
const protocolTitles: Readonly<Record<Protocol, string>> = { grpc: "gRPC", http: "HTTP", resp: "RESP" };

/** The section of docs/benchmarks.md. */
export function renderLatency(result: LatencyResult): string {
  const rows = listNames(setupTitles).flatMap((setup) =>
    listNames(protocolTitles).map((protocol) => {
      const measured = result[setup][protocol];
      return [
        setupTitles[setup],
        protocolTitles[protocol],
        renderCount(measured.half_load_per_s),
        measured.p50_ms.toFixed(2),
        measured.p99_ms.toFixed(2),
        measured.p999_ms.toFixed(2),
        renderShare(measured.degraded_share),
        renderVerdict(measured),
      ];
    }),
  );
  return [
    renderTable(
      ["counters", "protocol", "per second", "p50 ms", "p99 ms", "p99.9 ms", "without counters", "within the goal"],
      rows,
    ),
    "",
    "Without counters: the share that `on_failure` decided, because Valkey did not answer before the deadline.",
    "The deadline is 25 ms unless a policy or `--deadline` says otherwise.",
    `With \`deadline: 3ms\` that share is ${renderShares(result.valkey_deadline_3ms)};`,
    `with the default it is ${renderShares(result.valkey)}.`,
    "A short deadline bounds what a caller waits, at the price of these decisions.",
    "If more than 1 % of the calls miss it within 30 s, the breaker opens, and nearly all decisions do without counters",
    "until a probe is answered: choose a deadline well above the 99th percentile of your own servers.",
  ].join("\n");
}

function listNames<Name extends string>(titles: Readonly<Record<Name, string>>): readonly Name[] {
  return Object.keys(titles) as Name[];
}

function renderVerdict(measured: MeasuredLatency): string {
  const titles = { p50_ms: "p50", p99_ms: "p99", p999_ms: "p99.9" };
  const missed = listNames(titles).filter((one) => measured[one] > goal[one]);
  return missed.length === 0 ? "yes" : `no: ${missed.map((one) => titles[one]).join(", ")}`;
}

function renderShares(byProtocol: Readonly<Record<Protocol, MeasuredLatency>>): string {
  const shares = listNames(protocolTitles).map(
    (protocol) => `${renderShare(byProtocol[protocol].degraded_share)} over ${protocolTitles[protocol]}`,
  );
  return `${shares.slice(0, -1).join(", ")} and ${shares.at(-1)}`;
}

function renderShare(share: number): string {
  return share === 0 ? "0 %" : `${(share * 100).toFixed(3)} %`;
}
