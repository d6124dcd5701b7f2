import { printable, renderDuration } from "sluice";
import { askServer, type ServerOptions } from "./ask-server.ts";
import { renderJson } from "./control/write-json.ts";
import type { ExitCode, Terminal } from "./terminal.ts";

/** As much of `GET /v1/status` as is shown. */
interface StatusBody {
  readonly status: string;
  readonly detail?: string;
  readonly version: string;
  readonly node: string;
  readonly pid: number;
  readonly worker?: string | number;
  readonly uptime_ms: number;
  readonly policies: {
    readonly generation: number;
    readonly count: number;
    readonly state: string;
    readonly source: string;
    readonly path?: string;
    readonly age_ms: number;
    readonly problems: readonly string[];
  };
  readonly store?: StoreBody;
  readonly counters: {
    readonly kind: string;
    readonly at?: string;
    /** Whether every server that holds counters is connected and asked. */
    readonly ready?: boolean;
    readonly counters?: number;
    readonly max_counters?: number;
    readonly waiting?: number;
    readonly leases?: LeasesBody;
    readonly shards?: readonly ShardBody[];
  };
  readonly queue: { readonly pending: number; readonly max_pending: number };
  readonly shed: Readonly<Record<string, number>>;
  readonly protocols: Readonly<
    Record<
      string,
      { readonly addresses: readonly string[]; readonly connections: number; readonly turned_away: unknown }
    >
  >;
}

interface StoreBody {
  readonly at: string;
  readonly state: string;
  readonly reason?: string;
  readonly generation: number;
  readonly newest_generation: number;
  readonly source: string;
  readonly push: { readonly kind: string; readonly connected: boolean };
  readonly kill_switch?: { readonly mode: string; readonly until_ms: number; readonly reason: string };
  readonly problems: readonly string[];
  readonly precedence: string;
  readonly overridden: readonly string[];
}

interface LeasesBody {
  readonly held: number;
  readonly tokens: number;
  readonly stale: number;
  readonly stale_for_ms?: number;
}

interface ShardBody {
  readonly shard: string;
  readonly connected: boolean;
  readonly breaker: string;
  readonly round_trip_ms?: number;
  readonly failed_calls: number;
}

/** `sluice status`: how a server does. Exit code 1 if it is not ready; with `strict` also if it cannot reach its counters. */
export async function status(
  server: ServerOptions,
  { json, strict }: { readonly json?: boolean; readonly strict?: boolean },
  { stdout }: Pick<Terminal, "stdout">,
): Promise<ExitCode> {
  const text = await askServer(server, "v1/status");
  const body = JSON.parse(text) as StatusBody;
  stdout.write(json === true ? `${renderJson(body)}\n` : renderStatus(body));
  if (body.status === "stopping") return 1;
  return strict === true && body.counters.ready === false ? 1 : 0;
}

export function renderStatus(body: StatusBody): string {
  const { policies, counters, queue, shed, protocols } = body;
  const shedText = Object.entries(shed)
    .filter(([, count]) => count > 0)
    .map(([reason, count]) => `${count} by ${reason}`);
  const rows: (readonly [string, string])[] = [
    ["status", body.detail === undefined ? body.status : `${body.status}: ${body.detail}`],
    ["server", `Sluice ${body.version}, Node ${body.node}, process ${body.pid}${workerText(body)}`],
    ["up for", shortDuration(body.uptime_ms)],
    [
      "policies",
      `${policies.count}, generation ${policies.generation}, ${policies.state}, for ${shortDuration(policies.age_ms)}` +
        `, from ${policies.path ?? (body.store === undefined ? policies.source : "the policy store")}`,
    ],
    ...policies.problems.map((problem) => ["", problem] as const),
    ...(body.store === undefined ? [] : storeRows(body.store)),
    ["counters", countersText(counters)],
    ...(counters.shards ?? []).map((shard) => ["", shardText(shard)] as const),
    ...(counters.leases === undefined ? [] : [["leases", leasesText(counters.leases)] as const]),
    ["waiting", `${queue.pending} of at most ${queue.max_pending}`],
    ["shed", shedText.length === 0 ? "none" : shedText.join(", ")],
    ...Object.entries(protocols)
      .filter(([, { addresses }]) => addresses.length > 0)
      .map(
        ([protocol, { addresses, connections }]) =>
          [
            protocol,
            `${addresses.join(" ")}, ${connections} ${connections === 1 ? "connection" : "connections"}`,
          ] as const,
      ),
  ];
  return `${rows.map(([name, text]) => `${name.padEnd(10)}${printable(text)}`.trimEnd()).join("\n")}\n`;
}

function storeRows(store: StoreBody): readonly (readonly [string, string])[] {
  const { at, state, reason, generation, newest_generation: newest, source, push, kill_switch: kill, problems } = store;
  const behind = newest > generation ? ` of ${newest}` : "";
  const from = source === "snapshot" ? ", from the snapshot" : "";
  const heard =
    push.kind === "none" ? "looked for every second" : push.connected ? "heard at once" : "not heard at once";
  return [
    ["store", `${at}, generation ${generation}${behind}${from}, ${state}, changes ${heard}`],
    ...(reason === undefined ? [] : [["", reason] as const]),
    ...problems.map((problem) => ["", problem] as const),
    ...store.overridden.map((what) => ["", `in files and store, ${store.precedence} win: ${what}`] as const),
    ...(kill === undefined
      ? []
      : [["", `kill switch ${kill.mode} until ${new Date(kill.until_ms).toISOString()}: ${kill.reason}`] as const]),
  ];
}

function workerText({ worker }: StatusBody): string {
  return worker === undefined ? "" : `, worker ${worker}`;
}

function countersText({ kind, at, counters, max_counters, waiting }: StatusBody["counters"]): string {
  if (kind === "memory") return `in memory, ${counters} of at most ${max_counters}`;
  return `${at}, ${waiting} waiting`;
}

function shardText({ shard, connected, breaker, round_trip_ms, failed_calls }: ShardBody): string {
  const trip = round_trip_ms === undefined ? "" : `, ${round_trip_ms} ms away`;
  return `${shard}: ${connected ? "connected" : "not connected"}, breaker ${breaker}${trip}, ${failed_calls} failed calls`;
}

function leasesText({ held, tokens, stale, stale_for_ms: forMs }: LeasesBody): string {
  const since = forMs === undefined ? "" : ` for ${shortDuration(forMs)}`;
  const beyond = stale === 0 ? "" : `; ${stale} beyond their time${since}, because the counters do not answer`;
  return `${held} held, ${tokens} left to spend${beyond}`;
}

/** To the second. */
function shortDuration(ms: number): string {
  return renderDuration(Math.max(1, Math.floor(ms / 1_000)) * 1_000);
}
