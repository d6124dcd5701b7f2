// One of many processes that take from the same counters: node hammer.ts <servers> <count>. Prints how much of each it
// was allowed.
import { algorithms } from "sluice/internal";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { RedisCounters } from "../redis-counters.ts";

const [servers = "", count = "0"] = process.argv.slice(2);
const yearMs = 365 * 24 * 60 * 60 * 1000;
const store = new RedisCounters({ servers, deadlineMs: 10_000 });
await store.connected();
process.stdout.write("ready\n");
await new Promise((resolve) => process.stdin.once("data", resolve));
for (const algorithm of algorithms) {
  const limit = compileTestLimit({ algorithm, windows: [testWindow(500, yearMs)] });
  const costs = Array.from({ length: Number(count) }, (_, i) => 1 + (i % 2));
  const answers = await Promise.all(costs.map((cost) => store.take([resolvedLimit(limit, "everybody", cost)])));
  process.stdout.write(`${costs.reduce((sum, cost, i) => sum + (answers[i]!.taken ? cost : 0), 0)}\n`);
}
await store.close();
process.exit(0);
