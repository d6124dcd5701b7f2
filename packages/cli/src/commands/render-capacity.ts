import { renderCount, renderShare } from "@sluice/simulate/report";
import { type CapacityInput, type Transport, transports } from "../capacity/capacity-input.ts";
import type { CapacityPlan, Outcomes } from "../capacity/capacity-plan.ts";
import type { EstimateRow } from "../capacity/earlier-estimates.ts";
import type { LoadStep } from "../capacity/plan-by-load.ts";
import { leastAllowance } from "../capacity/plan-capacity.ts";
import type { Paint } from "../terminal/paint.ts";
import { barMarks, renderBars } from "../terminal/render-bars.ts";
import { renderTable } from "../terminal/render-table.ts";

export interface CapacityView {
  /** Undefined: lines may be as long as they are. */
  readonly width: number | undefined;
  readonly paint: Paint;
}

/** A quantity, its value with the unit, and how it comes about. */
type Line = readonly [quantity: string, value: string, how: string];

const usualWidth = 100;

export function renderCapacity(input: CapacityInput, plan: CapacityPlan, view: CapacityView): string {
  const sections: readonly (readonly [title: string, lines: readonly Line[]])[] = [
    ["At the peak", peakLines(input, plan)],
    ["Servers", serverLines(input, plan)],
    ["Store", storeLines(input, plan)],
    ["Network", networkLines(input, plan)],
    ["Money", moneyLines(input, plan)],
    ["The busiest subject", whaleLines(input, plan)],
    ["If limits cannot be decided", availabilityLines(input, plan)],
  ];
  // One table, so that columns are in line from section to section.
  const rows = sections.flatMap(([title, lines]) => [
    ["", "", ""],
    [title, "", ""],
    ...lines.map(([one, ...more]) => [`- ${one}`, ...more]),
  ]);
  const table = renderTable(
    [{ title: "" }, { title: "", align: "right" }, { title: "", flexible: true }],
    rows,
    view.width,
  );
  const titles = new Set(sections.map(([title]) => title));
  const shown = table
    .split("\n")
    .slice(2)
    .map((line) => (titles.has(line) ? view.paint.strong(line) : line.replace(/^- /, "  ")))
    .join("\n");
  const notes = listNotes(input, plan).map((note) => `${view.paint.careful("note")}: ${note}\n`);
  return shown + (notes.length === 0 ? "" : `\n${notes.join("")}`);
}

function peakLines({ demand }: CapacityInput, { peak }: CapacityPlan): readonly Line[] {
  return [
    [
      "checks",
      perSecond(peak.checks_per_second),
      `${renderCount(demand.checks_per_second)} on average × ${renderCount(demand.peak_factor)}`,
    ],
    ["limits decided", perSecond(peak.limits_per_second), `checks × ${renderCount(demand.limits_per_check)}`],
    [
      "from leases",
      perSecond(peak.leased_limits_per_second),
      `${renderShare(demand.lease_share, 1)} of them, without a call`,
    ],
    [
      "leases fetched",
      perSecond(peak.lease_calls_per_second),
      `those ÷ ${renderCount(demand.decisions_per_lease)} decisions each`,
    ],
    ["takes at the store", perSecond(peak.takes_per_second), "limits without a lease + leases"],
  ];
}

function serverLines({ layout, figures, demand }: CapacityInput, { servers }: CapacityPlan): readonly Line[] {
  const zones = layout.zones === 1 ? "" : `, carried by ${layout.zones - 1} of ${layout.zones} zones`;
  const regions = layout.regions === 1 ? "" : `, in ${layout.regions} regions`;
  const pods =
    layout.pods > 0
      ? "as given"
      : `cores ÷ ${percent(layout.target_cpu)} ÷ ${layout.cores_per_pod} a pod${zones}${regions}; at least 3 a region`;
  const more = demand.limits_per_check === 1 ? "" : ` + ${number(figures.server_us_per_limit)} a further limit`;
  return [
    [
      "CPU of a check",
      `${number(servers.cpu_us_per_check)} µs`,
      `${number(figures.server_us_per_check)} over ${layout.transport}${more} + ${number(figures.server_us_per_take)} a take`,
    ],
    ["cores kept busy", number(servers.cores), "checks × CPU of a check"],
    ["pods", renderCount(servers.pods), pods],
    [
      "CPU used",
      percent(servers.cpu_share),
      layout.zones === 1
        ? "of all cores"
        : `of all cores; ${percent(servers.cpu_share_without_a_zone)} without one zone`,
    ],
    [
      "memory",
      gigabytes(servers.memory_bytes),
      layout.transport === "library"
        ? "that of the application"
        : `${gigabytes(figures.server_memory_bytes)} a process`,
    ],
  ];
}

function storeLines({ layout, figures, demand }: CapacityInput, { store }: CapacityPlan): readonly Line[] {
  const clustered = store.lanes > 1;
  const bounds = {
    cpu: `cores ÷ ${percent(layout.target_cpu)}`,
    memory: `memory ÷ ${gigabytes(layout.shard_memory_bytes)}`,
    "the smallest cluster": "the smallest cluster",
  };
  const uneven = clustered ? `; ${store.lanes} lanes do not divide equally` : "";
  return [
    [
      "takes in a call",
      number(store.takes_per_call),
      `those of a process and lane in ${number((layout.round_trip_seconds * 1e6) / 4)} µs; 1 to 64`,
    ],
    [
      "CPU of a take",
      `${number(store.cpu_us_per_take)} µs`,
      `${number(figures.store_us_per_take)} a window + ${number(figures.store_us_per_call)} a call`,
    ],
    ["cores kept busy", number(store.cores), "takes × CPU of a take"],
    ["counters", renderCount(store.counters), `subjects × ${renderCount(demand.windows_per_limit)}`],
    ["shards", renderCount(store.shards), bounds[store.bound_by] + uneven],
    [
      "busiest shard",
      percent(store.busiest_shard_cpu_share),
      `of a core, and ${gigabytes(store.busiest_shard_memory_bytes)} with half as much again`,
    ],
    ["nodes", renderCount(store.nodes), `shards × (1 + ${layout.replicas})`],
    [
      "memory",
      gigabytes(store.memory_bytes),
      `counters × ${number(figures.counter_bytes)} bytes × 1.5 × ${1 + layout.replicas} copies`,
    ],
  ];
}

function networkLines({ layout, figures }: CapacityInput, { network }: CapacityPlan): readonly Line[] {
  return [
    [
      "clients",
      gigabits(network.client_bits_per_second),
      layout.transport === "library"
        ? "none: decided in the application"
        : `checks × ${number(figures.client_bytes_per_check)} bytes`,
    ],
    ["store", gigabits(network.store_bits_per_second), `takes × ${number(figures.store_bytes_per_take)} bytes`],
    [
      "replication",
      gigabits(network.replication_bits_per_second),
      `takes × ${number(figures.replication_bytes_per_take)} bytes × ${layout.replicas}`,
    ],
    [
      "between zones",
      gigabits(network.between_zones_bits_per_second),
      layout.zones === 1 ? "there is one zone" : `${layout.zones - 1} of ${layout.zones} bytes, and replication`,
    ],
  ];
}

function moneyLines({ layout, prices, demand }: CapacityInput, { money }: CapacityPlan): readonly Line[] {
  return [
    [
      "servers",
      amount(money.servers_month),
      `a month; ${layout.transport === "library" ? `cores ÷ ${percent(layout.target_cpu)}` : `pods × ${layout.cores_per_pod}`} × ${number(prices.core_month)} + GiB × ${number(prices.gib_month)}`,
    ],
    [
      "store",
      amount(money.store_month),
      `nodes × (${layout.cores_per_shard} × ${number(prices.core_month)} + GiB × ${number(prices.gib_month)})`,
    ],
    ["network", amount(money.network_month), `GB between zones × ${prices.zone_gb}, by the average`],
    ["other", amount(money.fixed_month), "as given"],
    ["in all", amount(money.month), "a month of 30 days"],
    [
      "a million checks",
      `${Number(money.per_million_checks.toPrecision(3))}`,
      `÷ ${renderCount(demand.checks_per_second)} checks/s on average`,
    ],
  ];
}

function whaleLines({ whale, layout }: CapacityInput, { whale: plan, servers }: CapacityPlan): readonly Line[] {
  const processes = (servers.pods * layout.cores_per_pod) / layout.regions;
  return [
    ["checks", perSecond(whale.checks_per_second), `with a limit of ${renderCount(whale.limit)}`],
    [
      "admitted beyond it",
      renderCount(plan.overshoot),
      `at most, at any time: ${percent(whale.max_overshoot)} of the limit`,
    ],
    [
      "a lease",
      plan.grant < 1 ? "none" : renderCount(Math.floor(plan.grant)),
      `the smaller of ${whale.lease_seconds} s of a process, and that ÷ (${renderCount(processes)} + 1) processes`,
    ],
    ["calls to its shard", perSecond(plan.calls_per_second), `${percent(plan.shard_share)} of the target of one shard`],
  ];
}

function availabilityLines({ uptimes, demand }: CapacityInput, { availability }: CapacityPlan): readonly Line[] {
  const line = (name: string, { passed, failed, unlimited }: Outcomes): Line => [
    name,
    fine(passed),
    `of requests pass; ${fine(failed)} fail wrongly, ${fine(unlimited)} pass unlimited`,
  ];
  return [
    line("on_failure: open", availability.open),
    line("on_failure: closed", availability.closed),
    [
      "assumed",
      fine(uptimes.limiter),
      `up, behind a gateway with ${fine(uptimes.gateway)}; ${percent(demand.allowed_share)} within limits`,
    ],
  ];
}

function listNotes(
  { layout, demand, whale: asked }: CapacityInput,
  { servers, store, whale }: CapacityPlan,
): readonly string[] {
  const notes: string[] = [];
  if (demand.lease_share === 0)
    notes.push("without leases; --leases takes the share that sluice_lease_decisions_total shows for your traffic.");
  if (servers.cpu_share_without_a_zone > layout.target_cpu + 1e-9)
    notes.push(`${servers.pods} pods are busier than ${percent(layout.target_cpu)}.`);
  if (store.lanes > layout.lanes)
    notes.push(`set --redis-lanes ${store.lanes}, or more shards would share too few lanes.`);
  if (whale.overshoot < leastAllowance && asked.max_overshoot > 0)
    notes.push(
      `limits as small as the busiest subject's are not leased: it would take ${leastAllowance} units or more beyond them.`,
    );
  else if (whale.grant < 1 && asked.max_overshoot > 0)
    notes.push(
      "the busiest subject cannot be leased to so many processes: raise max_overshoot, use a longer window, or ask fewer servers.",
    );
  if (whale.shard_share > 1) notes.push("the busiest subject alone is too much for its shard.");
  return notes;
}

/** What `--measure` measured of each way to ask, and of the store. */
export interface Measured {
  readonly server_us_per_check: Readonly<Record<Transport, number>>;
  readonly client_bytes_per_check: Readonly<Record<Transport, number>>;
  readonly server_counter_bytes: number;
  readonly store: { readonly product: string } | undefined;
}

export function renderMeasured(measured: Measured, { width, paint }: CapacityView): string {
  const { server_us_per_check: us, client_bytes_per_check: bytes, store } = measured;
  const right = "right";
  const table = renderTable(
    [
      { title: "transport", flexible: true },
      { title: "µs of a server", align: right },
      { title: "checks a core and second", align: right },
      { title: "bytes", align: right },
    ],
    transports.map((one) => [one, number(us[one]), renderCount(1e6 / us[one]), number(bytes[one])]),
    width,
  );
  const where =
    store === undefined ? "no store is installed, so its figures are the defaults" : `store: ${store.product}`;
  const memory = `a counter in the memory of a server: ${number(measured.server_counter_bytes)} bytes`;
  return `${paint.strong("Measured on this machine")}\n${table}${memory}; ${where}\n`;
}

/** The fleet for less and more traffic: cores that are paid for. */
export function renderLoadPlot(
  steps: readonly LoadStep[],
  input: CapacityInput,
  { width = usualWidth, paint }: CapacityView,
): string {
  const marks = barMarks(paint);
  const texts = steps.map(({ plan }) =>
    plan === undefined
      ? []
      : [
          `${renderCount(plan.servers.pods)} pods`,
          `${renderCount(plan.store.shards)} ${plan.store.shards === 1 ? "shard " : "shards"}`,
          `${Number(plan.money.per_million_checks.toPrecision(2))} a million`,
        ],
  );
  const widths = [0, 1, 2].map((i) => Math.max(0, ...texts.map((one) => one[i]?.length ?? 0)));
  const titles = steps.map(({ checks_per_second }) => `${renderCount(checks_per_second)}/s`);
  const longest = Math.max(...titles.map(({ length }) => length));
  const bars = steps.map(({ plan }, index) => ({
    title: titles[index]!.padStart(longest),
    good: plan === undefined ? 0 : plan.servers.paid_cores,
    bad: plan === undefined ? 0 : plan.store.nodes * input.layout.cores_per_shard,
    text:
      plan === undefined
        ? "no cluster is large enough"
        : texts[index]!.map((text, i) => text.padStart(widths[i]!)).join("  "),
  }));
  const legend = `Cores by checks on average: ${paint.good(marks.good)} of servers, ${paint.bad(marks.bad)} of the store\n`;
  return legend + renderBars(bars, width, paint);
}

export function renderEstimates(rows: readonly EstimateRow[], { width, paint }: CapacityView): string {
  const cell = (value: number | undefined, unit: string): string =>
    value === undefined ? "-" : `${quantity(value)}${unit === "" || unit === "/s" ? unit : ` ${unit}`}`;
  const table = renderTable(
    [
      { title: "design" },
      { title: "quantity" },
      { title: "it says", align: "right" },
      { title: "its inputs give", align: "right" },
      { title: "here", align: "right" },
      { title: "because", flexible: true },
    ],
    rows.map(({ design, quantity: name, unit, said, computed, here, because }) => [
      design,
      name,
      cell(said, unit),
      cell(computed, unit),
      cell(here, unit),
      because,
    ]),
    width,
  );
  return `${paint.strong("Estimates of earlier designs")}\n${table}`;
}

function quantity(value: number): string {
  return value !== 0 && Math.abs(value) < 100 ? String(Number(value.toPrecision(4))) : renderCount(value);
}

const number = (value: number): string =>
  Math.abs(value) < 100 ? String(Number(value.toPrecision(3))) : renderCount(value);
const perSecond = (value: number): string => `${renderCount(value)}/s`;
const percent = (share: number): string => `${number(share * 100)} %`;
const fine = (share: number): string => `${Number((share * 100).toFixed(4))} %`;
const gigabytes = (bytes: number): string => `${number(bytes / 1024 ** 3)} GiB`;
const gigabits = (bits: number): string => `${number(bits / 1e9)} Gbit/s`;
const amount = (value: number): string => (value < 10 ? String(Number(value.toPrecision(2))) : renderCount(value));
