// npm run bench -- soak [--minutes 10] [--sinks-down] [--json] [--quick]: traffic over every protocol, connections that open and close,
// new subjects and random bytes; after each round the memory that is left after garbage collection. It should be flat. With
// --sinks-down every decision is a usage event for sinks of every kind that are all dead, and the store of usage history is, too.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { CheckBatchRequest, CheckRequest } from "@sluice/protocol";
import { startPostgres } from "@sluice/test-servers";
import { framed } from "./service/framed.ts";
import { loadByH2load, loadByRedisBenchmark, loadByWrk } from "./service/load-tools.ts";
import { type Served, startServed } from "./service/start-served.ts";
import { wrkScript } from "./service/wrk-script.ts";

const { values: args } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    minutes: { type: "string", default: "10" },
    "sinks-down": { type: "boolean", default: false },
  },
});
const minutes = args.quick ? 0.05 : Number(args.minutes);
if (!(minutes > 0 && minutes <= 24 * 60)) throw new Error("--minutes must be a number up to 1440");
/** Without sinks, memory is what counts: short rounds give more samples. */
const calls = args.quick ? 200 : args["sinks-down"] ? 2_000 : 20_000;

const root = path.join(import.meta.dirname, "..");
execFileSync(path.join(root, "node_modules", ".bin", "tsc"), ["-b", "packages/server"], {
  cwd: root,
  stdio: "inherit",
});

const folder = mkdtempSync(path.join(tmpdir(), "sluice-soak-"));
const file = (name: string, content: string | Uint8Array): string => {
  const at = path.join(folder, name);
  writeFileSync(at, content);
  return at;
};
const policies = file(
  "policies.yaml",
  `policies:
  - { id: orders, match: { endpoint: /v1/orders }, limits: [{ by: [user], windows: [5/s, 100/m] }, { by: [tenant], windows: [1k/s] }], on_failure: open }
  - { id: billed, match: { endpoint: /v1/elsewhere }, limits: [{ by: [user], windows: [5/s, 100/m] }], on_failure: open, events: each }
  - { id: scarce, match: { endpoint: /v1/scarce }, limits: [{ by: [user], windows: [2/m] }], on_failure: open, events: each }
`,
);
const dimensions = { tenant: "t", user: "u", endpoint: "/v1/orders" };
const unary = file("unary.bin", framed(CheckRequest.encode(CheckRequest.fromPartial({ dimensions })).finish()));
const batch = CheckBatchRequest.fromPartial({
  sequence: 1,
  checks: Array.from({ length: 64 }, () => ({ dimensions })),
});
const stream = file("stream.bin", framed(CheckBatchRequest.encode(batch).finish()));
const post = file(
  "post.lua",
  wrkScript('{"dimensions":{"tenant":"t","user":"user-%d","endpoint":"/v1/elsewhere"}}', 20_000),
);

/** With sinks down most of these are denied, of many users, so that the records of denials reach their bound within minutes. */
const respEndpoint = args["sinks-down"] ? "/v1/scarce" : "/v1/elsewhere";

const queue = 5_000;
/** Nothing listens at port 1, and a write to this file fails as on a full disk. */
const deadSinks = ["http://127.0.0.1:1/events", "redis://127.0.0.1:1", "kafka:", "file:/dev/full"];

/** The server, of whose sinks none works. Its store is there when it starts, and gone before the first check. */
async function startWithoutSinks(): Promise<Served> {
  const postgres = await startPostgres();
  try {
    const settings = {
      SLUICE_USAGE_EVENTS: deadSinks.join(","),
      SLUICE_USAGE_EVENTS_QUEUE: String(queue),
      SLUICE_KAFKA: "127.0.0.1:1",
      SLUICE_STORE_URL: postgres.url,
      SLUICE_ADMIN_PORT: "off",
    };
    return await startServed("sluice", policies, "", "off", JSON.stringify(settings));
  } finally {
    await postgres.close();
  }
}

const server = args["sinks-down"] ? await startWithoutSinks() : await startServed("sluice", policies);
const { http, grpc, resp } = server.ports;

/** The sum of a metric over its labels, from the server's page. */
async function readMetric(name: string): Promise<number> {
  const page = await (await fetch(`http://127.0.0.1:${http}/metrics`)).text();
  return [...page.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, "gm"))].reduce(
    (sum, [, value]) => sum + Number(value),
    0,
  );
}

/** Random bytes, seeded with the round's number, so that a round can be repeated. */
function nonsense(seed: number): Buffer {
  let state = seed + 1;
  return Buffer.from(
    Array.from({ length: 4_096 }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state >>> 24;
    }),
  );
}

async function sendNonsense(port: number, seed: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.end(nonsense(seed)));
    socket.on("error", () => {}).on("close", () => resolve());
    socket.setTimeout(2_000, () => socket.destroy());
    socket.resume();
  });
}

interface Sample {
  readonly minute: number;
  readonly heapMiB: number;
  readonly rssMiB: number;
}

const samples: Sample[] = [];
const startedMs = performance.now();
const elapsed = (): number => (performance.now() - startedMs) / 60_000;
let checks = 0;
/** What waits for sinks and for the store, all of it bounded. */
interface Waiting {
  readonly events: number;
  readonly eventBytes: number;
  readonly eventsDropped: number;
  readonly sums: number;
  readonly denials: number;
  readonly denialsDropped: number;
}
let waiting: Waiting | undefined;
try {
  for (let round = 0; elapsed() < minutes; round++) {
    await loadByH2load(`http://127.0.0.1:${grpc}/sluice.v1.RateLimiter/Check`, unary, {
      requests: calls,
      connections: 8,
      streams: 8,
    });
    await loadByH2load(`http://127.0.0.1:${grpc}/sluice.v1.RateLimiter/CheckStream`, stream, {
      requests: calls / 20,
      connections: 4,
      streams: 4,
    });
    const { perSecond } = await loadByWrk(`http://127.0.0.1:${http}/v1/check`, post, 2, 32);
    await loadByRedisBenchmark(resp!, calls, ["CL.THROTTLE", "key:__rand_int__", "10", "100", "60"]);
    await loadByRedisBenchmark(resp!, calls, ["SLUICE.CHECK", "user=__rand_int__", `endpoint=${respEndpoint}`]);
    for (const port of [http!, grpc!, resp!]) await sendNonsense(port, round);
    checks += calls + (calls / 20) * 64 + perSecond * 2 + calls * 2;
    const { heapBytes, rssBytes } = await server.used(true);
    samples.push({ minute: elapsed(), heapMiB: heapBytes / 2 ** 20, rssMiB: rssBytes / 2 ** 20 });
    const bar = "█".repeat(Math.round(Math.min(elapsed() / minutes, 1) * 30)).padEnd(30, "░");
    const { heapMiB, rssMiB } = samples.at(-1)!;
    process.stderr.write(
      `\r${bar} ${elapsed().toFixed(1)} of ${minutes} min  heap ${heapMiB.toFixed(1)} MiB  resident ${rssMiB.toFixed(0)} MiB `,
    );
  }
  if (args["sinks-down"])
    waiting = {
      events: await readMetric("sluice_usage_events_waiting"),
      eventBytes: await readMetric("sluice_usage_events_waiting_bytes"),
      eventsDropped: await readMetric("sluice_usage_events_dropped_total"),
      sums: await readMetric("sluice_usage_sums_waiting"),
      denials: await readMetric("sluice_denial_records_waiting"),
      denialsDropped: await readMetric("sluice_denial_records_dropped_total"),
    };
} finally {
  server.stop();
  rmSync(folder, { recursive: true, force: true });
  process.stderr.write("\n");
}

/** The growth rate: the slope of the straight line through the second half, when tables have reached their size. */
function slope(pick: (sample: Sample) => number): number {
  const later = samples.slice(Math.floor(samples.length / 2));
  if (later.length < 2) return 0;
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(later.map(({ minute }) => minute)), mean(later.map(pick))];
  const covariance = later.reduce((sum, one) => sum + (one.minute - x) * (pick(one) - y), 0);
  return covariance / later.reduce((sum, one) => sum + (one.minute - x) ** 2, 0);
}

const rounded = (value: number): number => Number(value.toFixed(2));
const result = {
  suite: "soak",
  minutes: rounded(elapsed()),
  checks: Math.round(checks),
  heap_mib: {
    first: rounded(samples[0]!.heapMiB),
    last: rounded(samples.at(-1)!.heapMiB),
    per_minute: rounded(slope(({ heapMiB }) => heapMiB)),
  },
  resident_mib: {
    first: rounded(samples[0]!.rssMiB),
    last: rounded(samples.at(-1)!.rssMiB),
    per_minute: rounded(slope(({ rssMiB }) => rssMiB)),
  },
  samples: samples.map(({ minute, heapMiB, rssMiB }) => [minute, heapMiB, rssMiB].map(rounded)),
  ...(waiting && {
    sinks_down: deadSinks.map((sink) => sink.slice(0, sink.indexOf(":"))),
    events_waiting: waiting.events,
    most_events_waiting: queue * deadSinks.length,
    event_bytes_waiting: waiting.eventBytes,
    events_dropped: waiting.eventsDropped,
    sums_waiting: waiting.sums,
    denials_waiting: waiting.denials,
    denials_dropped: waiting.denialsDropped,
  }),
};
console.log(
  `${result.checks} checks in ${result.minutes} min; in the second half the heap grew by ${result.heap_mib.per_minute} MiB a minute`,
);
console.log(`  heap      ${result.heap_mib.first} → ${result.heap_mib.last} MiB`);
if (waiting !== undefined)
  console.log(
    `  ${deadSinks.length} dead sinks hold ${waiting.events} events of at most ${queue * deadSinks.length} ` +
      `(${(waiting.eventBytes / 2 ** 20).toFixed(1)} MiB), and dropped ${waiting.eventsDropped}; for the store wait ${waiting.sums} sums ` +
      `and ${waiting.denials} records of denials of at most 5000`,
  );
console.log(`  resident  ${result.resident_mib.first} → ${result.resident_mib.last} MiB`);
if (args.json) console.log(JSON.stringify(result));
