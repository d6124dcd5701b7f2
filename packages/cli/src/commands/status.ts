import type {
  CountersStatusBody,
  LeasesBody,
  ShardStatusBody,
  StatusBody,
  StoreStatusBody,
} from "@sluice/protocol/http";
import { printable, renderDuration } from "sluice/internal";
import { askServer, type ServerOptions } from "../server/ask-server.ts";
import type { ExitCode, Terminal } from "../terminal/terminal.ts";
import { renderJson } from "../terminal/write-json.ts";

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
  return strict === true && body.counters.kind === "redis" && !body.counters.ready ? 1 : 0;
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
    ...(counters.kind === "memory" ? [] : serverRows(counters)),
    ...(body.strong === undefined ? [] : [["strong", strongText(body.strong)] as const]),
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

function serverRows({
  shards,
  leases,
}: Extract<CountersStatusBody, { kind: "redis" }>): readonly (readonly [string, string])[] {
  return [
    ...shards.map((shard) => ["", shardText(shard)] as const),
    ...(leases === undefined ? [] : [["leases", leasesText(leases)] as const]),
  ];
}

function storeRows(store: StoreStatusBody): readonly (readonly [string, string])[] {
  const { at, state, reason, generation, newest_generation: newest, source, push, kill_switch: kill, problems } = store;
  const behind = newest > generation ? ` of ${newest}` : "";
  const from = source === "store" ? "" : `, from the ${source === "topic" ? "Kafka topic" : "snapshot"}`;
  const heard =
    push.kind === "none" ? "looked for every second" : push.connected ? "heard at once" : "not heard at once";
  return [
    ["store", `${at}, generation ${generation}${behind}${from}, ${state}, changes ${heard}`],
    ...(push.topic_generation === undefined ? [] : [["", `Kafka topic: generation ${push.topic_generation}`] as const]),
    ...(reason === undefined ? [] : [["", reason] as const]),
    ...problems.map((problem) => ["", problem] as const),
    ...store.overridden.map((what) => ["", `in files and store, ${store.precedence} win: ${what}`] as const),
    ...store.disabled.map(
      ({ policy, mode, until_ms: untilMs, reason }) =>
        ["", `policy ${policy} is disabled (${mode}) until ${new Date(untilMs).toISOString()}: ${reason}`] as const,
    ),
    ...(store.blocked === 0 ? [] : [["", `${store.blocked} subjects are blocked`] as const]),
    ...(kill === undefined
      ? []
      : [["", `kill switch ${kill.mode} until ${new Date(kill.until_ms).toISOString()}: ${kill.reason}`] as const]),
  ];
}

function workerText({ worker }: StatusBody): string {
  return worker === undefined ? "" : `, worker ${worker}`;
}

function countersText(counters: CountersStatusBody): string {
  if (counters.kind === "memory") return `in memory, ${counters.counters} of at most ${counters.max_counters}`;
  return `${counters.at}, ${counters.waiting} waiting`;
}

function strongText({ at, breaker, waiting, failed_transactions: failed }: NonNullable<StatusBody["strong"]>): string {
  return `${at}, breaker ${breaker}, ${waiting} waiting, ${failed} failed transactions`;
}

function shardText(status: ShardStatusBody): string {
  const { shard, connected, breaker, round_trip_ms, failed_calls, load, clock_ahead_ms: ahead = 0 } = status;
  const trip = round_trip_ms === undefined ? "" : `, ${round_trip_ms} ms away`;
  const cpu = load?.cpu === undefined ? "" : `, ${Math.round(load.cpu * 100)} % of a core`;
  const evicted = load === undefined || load.evicted_keys === 0 ? "" : `, ${load.evicted_keys} keys evicted`;
  const clock = Math.abs(ahead) > 1_000 ? `, its clock is ${Math.abs(ahead)} ms ${ahead > 0 ? "ahead" : "behind"}` : "";
  const state = `${connected ? "connected" : "not connected"}, breaker ${breaker}`;
  return `${shard}: ${state}${trip}${cpu}${evicted}${clock}, ${failed_calls} failed calls`;
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
