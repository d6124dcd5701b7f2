// One of many processes that lease the same counters: node lease-process.ts <servers> <log> <base>. Until it is stopped
// it requests little, so that leases are held, and then, along with all others, far more than is available. It writes
// every admission to its log: line, user, from and to in milliseconds since the base, cost.
import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { RedisCounters } from "@sluice/redis";
import { createLimiter, LeasedCounters } from "sluice";
import { leasedLines, leasedPolicies, tenant, users } from "./leased-lines.ts";

const [servers = "", log = "", base = "0"] = process.argv.slice(2);
const file = openSync(log, "a");
const baseNs = BigInt(base);
const tickMs = 10;
/** Requests per tick for every line and user, in quiet and in busy phases, which alternate. */
const gentlyPerTick = 0.2;
const greedilyPerTick = 5;
const turnMs = 2400;
const greedyMs = 500;

// The monotonic clock, which all processes of a machine share.
function nowMs(): number {
  return Number(process.hrtime.bigint() - baseNs) / 1e6;
}

const centre = new RedisCounters({ servers });
const counters = new LeasedCounters(centre, { leaseMs: 800, staleMs: 700, refreshMs: 1500 });
const limiter = createLimiter({ policies: leasedPolicies, counters });

let noted = "";
let asked = 0;
let owed = 0;

async function check(line: string, user: string, cost: number): Promise<void> {
  const fromMs = nowMs();
  const decision = await limiter.check({ dimensions: { endpoint: `/${line}`, user, tenant }, cost });
  const toMs = nowMs();
  if (decision.allowed && decision.degraded === undefined) noted += `${line} ${user} ${fromMs} ${toMs} ${cost}\n`;
}

let isStopped = false;
process.stdin.on("data", () => {
  isStopped = true;
});
process.stdin.on("close", () => process.exit(1));

await centre.connected().catch(() => {});
process.stdout.write("ready\n");
while (!isStopped) {
  owed += nowMs() % turnMs < turnMs - greedyMs ? gentlyPerTick : greedilyPerTick;
  for (; owed >= 1; owed -= 1) {
    for (const line of Object.keys(leasedLines)) {
      for (const user of users) void check(line, user, asked++ % 9 === 0 ? 3 : 1);
    }
  }
  await sleep(tickMs);
  writeSync(file, noted);
  noted = "";
}
await sleep(1000);
writeSync(file, noted);
const { stats } = counters;
await limiter.close();
process.stdout.write(`${JSON.stringify(stats)}\n`);
process.exit(0);
