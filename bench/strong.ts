// npm run bench -- strong [--json] [--quick] [--write]: how many checks a second counters in PostgreSQL and SQLite decide, which one
// row shares and which many rows share; how many of them share a transaction, and what they cost in CPU time.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { SqlCounters } from "@sluice/sql/counters";
import { startPostgres } from "@sluice/test-servers";
import type { TakeAnswer } from "sluice/store";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import {
  createAsker,
  findMedian,
  interleaveOnServers,
  type MeteredServer,
  nodeUsPerCheck,
  perSecond,
  type ServerRound,
} from "./measure/interleave-on-servers.ts";
import { renderCount, renderTable, writeSection } from "./measure/write-section.ts";

const { values: args } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
  },
});

const size = args.quick
  ? { rounds: 1, warmup: 1, roundMs: 50, rows: 10 }
  : { rounds: 15, warmup: 2, roundMs: 500, rows: 1_000 };
const inFlights = args.quick ? [1, 16] : [1, 16, 256];
const ticksPerSecond = 100;

/** CPU time of PostgreSQL's processes, as Linux reports it. */
function meterProcess(pid: () => number): MeteredServer {
  const ticksOf = (one: string): { readonly parent: number; readonly ticks: number } => {
    try {
      const fields = readFileSync(`/proc/${one}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
      return { parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) };
    } catch {
      return { parent: 0, ticks: 0 };
    }
  };
  return {
    async command(): Promise<string> {
      const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
      let ticks = 0;
      for (const one of all) {
        const found = ticksOf(one);
        if (found.parent === pid() || Number(one) === pid()) ticks += found.ticks;
      }
      return `used_cpu_user:${ticks / ticksPerSecond}\n`;
    },
  };
}

function sumOf(rounds: readonly ServerRound[], quantity: "serverUs" | "checks"): number {
  return rounds.reduce((sum, round) => sum + round[quantity], 0);
}

const limit = compileTestLimit({
  algorithm: "gcra",
  windows: [testWindow(1e9, 1000)],
  policy: "bench",
  counters: "strong",
});

/** Every commit reaches the disk. */
const postgres = await startPostgres({ settings: { fsync: "on", full_page_writes: "on", shared_buffers: "128MB" } });
const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-"));
const databases = { PostgreSQL: postgres.url, SQLite: `sqlite:${path.join(folder, "counters.db")}` };
const kinds = Object.entries(databases).flatMap(([database, url]) =>
  [1, size.rows].map((rows) => ({
    name: `${database}, ${rows === 1 ? "one row" : `${rows} rows`}`,
    store: new SqlCounters({ url, deadlineMs: 60_000 }),
    rows,
  })),
);

try {
  const askers = kinds.map(({ name, store, rows }) =>
    createAsker(
      name,
      (number): Promise<TakeAnswer> => store.take([resolvedLimit(limit, `${name} ${number % rows}`)]),
      ({ taken }) => taken,
    ),
  );
  const results = [];
  let from = 0;
  for (const inFlight of inFlights) {
    const counted = kinds.map(({ store }) => ({ store, before: { ...store.stats } }));
    const rounds = await interleaveOnServers(askers, [meterProcess(() => postgres.pid)], { ...size, inFlight, from });
    from += 1_000_000;
    for (const [i, { name, store, rows }] of kinds.entries()) {
      const { actions, transactions } = counted[i]!.before;
      const nodeUs = findMedian(rounds, name, nodeUsPerCheck);
      // SQLite runs in this process. The kernel counts in hundredths of a second, which are too coarse for one round.
      const ofServer = name.startsWith("SQLite") ? [] : rounds.get(name)!;
      const serverUs = sumOf(ofServer, "serverUs") / Math.max(sumOf(ofServer, "checks"), 1);
      results.push({
        ...{ name, rows, in_flight: inFlight, per_second: Math.round(findMedian(rounds, name, perSecond)) },
        per_transaction:
          Math.round(((store.stats.actions - actions) / (store.stats.transactions - transactions)) * 10) / 10,
        ...{ node_us: Math.round(nodeUs), server_us: Math.round(serverUs) },
        per_second_and_core: Math.round(1e6 / (nodeUs + serverUs)),
      });
    }
  }
  const heads = ["", "in flight", "checks/s", "per transaction", "Node µs", "server µs", "checks/s per core"];
  const table = renderTable(
    heads,
    results.map((one) => [
      ...[one.name, one.in_flight, renderCount(one.per_second), one.per_transaction, one.node_us, one.server_us],
      renderCount(one.per_second_and_core),
    ]),
  );
  console.log(table);
  if (args.write) writeSection("strong", table);
  if (args.json) console.log(JSON.stringify({ suite: "strong", rows: size.rows, results }));
} finally {
  for (const { store } of kinds) await store.close();
  await postgres.close();
  rmSync(folder, { recursive: true, force: true });
}
