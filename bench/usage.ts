// npm run bench -- usage [--rows 5000000] [--json] [--quick]: how large usage gets in PostgreSQL with 10 000 policies and 50 000
// tracked subjects, and how long storing, adding up, deleting and reading take.
import { parseArgs } from "node:util";
import { deleteOldUsage, rollUpUsage } from "@sluice/server/internal";
import { openPolicyStore, type PolicyStore, type UsageQuery, type UsageSum } from "@sluice/sql";
import { startPostgres } from "@sluice/test-servers";

const { values: args } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    rows: { type: "string", default: "5000000" },
  },
});
const [policies, subjects] = args.quick ? [100, 500] : [10_000, 50_000];
const series = policies + subjects;
const rows = args.quick ? 10_000 : Number(args.rows);
if (!(rows >= 2 * series && rows <= 100_000_000)) throw new Error(`--rows must be from ${2 * series} to 100000000`);

const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000];
const sumsAtOnce = 5_000;
/** Half of the rows are minutes of one hour, the others days before it. */
const minutes = Math.min(60, Math.floor(rows / 2 / series));
const days = Math.max(1, Math.floor(rows / series) - minutes);
/** 23:00 of the last day. */
const lastHourMs = 20_000 * dayMs + 23 * hourMs;

/** Every policy in total, and every subject with one of them. A tenth of the sums have denials. */
function createSums(startMs: number): readonly UsageSum[] {
  const sum = (i: number, changes: Partial<UsageSum>): UsageSum => ({
    ...{ policy: `policy-${i % policies}`, limit: "tenant", dimension: "", subject: "", startMs },
    ...{
      decided: 100 + (i % 900),
      allowed: 100,
      denied: i % 10 === 0 ? 5 : 0,
      cost: 100,
      degraded: 0,
      shadowDenied: 0,
    },
    denials: i % 10 === 0 ? [{ reason: "over_limit", window: "100/m", denied: 5 }] : [],
    ...changes,
  });
  return [
    ...Array.from({ length: policies }, (_, i) => sum(i, {})),
    ...Array.from({ length: subjects }, (_, i) => sum(i, { dimension: "tenant", subject: `tenant-${i}` })),
  ];
}

async function time<Result>(work: () => Promise<Result>): Promise<readonly [number, Result]> {
  const startedMs = performance.now();
  const result = await work();
  return [Math.round(performance.now() - startedMs), result];
}

let sequence = 0;
/** What a node stores of a period in which everything was used. */
async function flush(store: PolicyStore, sums: readonly UsageSum[]): Promise<void> {
  for (let i = 0; i < sums.length; i += sumsAtOnce) {
    sequence += 1;
    const part = sums.slice(i, i + sumsAtOnce);
    await store.note((note) => note.addUsage({ node: "n1", boot: "b1", sequence, sums: part }));
  }
}

const postgres = await startPostgres({ settings: { shared_buffers: "1GB", max_wal_size: "4GB", work_mem: "16MB" } });
try {
  const url = await postgres.createDatabase();
  const store = await openPolicyStore({ url });
  const psql = (statements: string): Promise<string> => postgres.psql(statements, url);
  const number = async (statement: string): Promise<number> => Number(await psql(statement));

  const [firstFlushMs] = await time(() => flush(store, createSums(lastHourMs)));
  const columns = "decided, allowed, denied, cost, degraded, shadow_denied";
  const lastS = lastHourMs / 1_000;
  const copy = (table: string, more: string): string =>
    `insert into ${table} select series, 60, start_s + 60 * n, ${more} from ${table}, generate_series(1, ${minutes - 1}) n
       where step_s = 60 and start_s = ${lastS};
     insert into ${table} select series, 86400, ${lastS - 82_800} - 86400 * n, ${more} from ${table}, generate_series(1, ${days}) n
       where step_s = 60 and start_s = ${lastS};`;
  const [loadMs] = await time(() =>
    psql(copy("sluice_usage", columns) + copy("sluice_usage_denials", "reason, window_name, denied")),
  );
  await psql("vacuum analyze");

  const tables = ["sluice_usage", "sluice_usage_denials", "sluice_usage_series"];
  const sizes = await Promise.all(tables.map((table) => number(`select pg_total_relation_size('${table}')`)));
  const heap = await number("select pg_relation_size('sluice_usage')");
  const loaded = await number("select count(*) from sluice_usage");

  const lastMinuteMs = lastHourMs + (minutes - 1) * minuteMs;
  const [flushMs] = await time(() => flush(store, createSums(lastMinuteMs)));
  const [hourMsTaken] = await time(() => rollUpUsage(store));
  await flush(store, createSums(lastMinuteMs).slice(0, sumsAtOnce));
  const [againMs] = await time(() => rollUpUsage(store));

  const read = async (query: Partial<UsageQuery>): Promise<number> => {
    const whole = { step: "day", fromMs: 0, toMs: 2 ** 45, by: [], atMost: 1_001, ...query } as const;
    const runs: number[] = [];
    for (let i = 0; i < 3; i++)
      runs.push(
        (await time(() => store.read(async (view) => [await view.usage(whole), await view.usageDenials(whole)])))[0],
      );
    return Math.min(...runs);
  };
  const today = { fromMs: lastHourMs - 23 * hourMs, toMs: lastHourMs + hourMs } as const;
  const queries = {
    subject_month_by_day: await read({ dimension: "tenant", subject: "tenant-7", fromMs: lastHourMs - 30 * dayMs }),
    policy_hour_by_minute: await read({ step: "minute", policy: "policy-7", fromMs: lastHourMs }),
    subjects_of_a_day: await read({ dimension: "tenant", by: ["subject"], ...today }),
    all_by_day: await read({}),
  };

  const kept = { minutesMs: dayMs, totalsMs: 400 * dayMs };
  const [deleteMinuteMs] = await time(() => deleteOldUsage(store, lastHourMs + minuteMs + kept.minutesMs, kept));
  const oldestDayMs = lastHourMs - 23 * hourMs - days * dayMs;
  const [deleteDayMs] = await time(() =>
    deleteOldUsage(store, oldestDayMs + dayMs + kept.totalsMs, { ...kept, minutesMs: 800 * dayMs }),
  );
  await store.close();

  const bytesPerRow = Math.round((sizes[0]! + sizes[1]!) / loaded);
  const full = { minutes: series * 1_440 * 30, hours: series * 24 * 365, days: series * 365 };
  const gigabytes = (share: number): number =>
    Math.round(((full.minutes * share + full.hours * Math.min(1, share * 4) + full.days) * bytesPerRow) / 1e8) / 10;
  const result = {
    ...{ suite: "usage", policies, subjects, rows: loaded, minutes, days },
    bytes: { per_row: bytesPerRow, heap_per_row: Math.round(heap / loaded), total: sizes.reduce((a, b) => a + b, 0) },
    rows_per_day: { all_minutes: series * (1_440 + 24 + 1), tenth_of_minutes: series * (144 + 9.6 + 1) },
    retention_gb: {
      all_minutes: gigabytes(1),
      tenth_of_minutes: gigabytes(0.1),
      hundredth_of_minutes: gigabytes(0.01),
    },
    ms: {
      ...{ load: loadMs, flush_new: firstFlushMs, flush: flushMs, roll_up: hourMsTaken, roll_up_again: againMs },
      ...{ delete_minute: deleteMinuteMs, delete_day: deleteDayMs, ...queries },
    },
  };
  console.log(`${loaded.toLocaleString("en")} rows: ${series} series, each in ${minutes} minutes and on ${days} days`);
  for (const [part, values] of Object.entries(result))
    if (typeof values === "object")
      for (const [name, value] of Object.entries(values))
        console.log(`  ${part.padEnd(14)} ${name.padEnd(28)} ${value.toLocaleString("en").padStart(16)}`);
  if (args.json) console.log(JSON.stringify(result));
} finally {
  await postgres.close();
}
