// Counts on the given server, closes, and prints what still keeps the process alive: nothing. Then it must end.
import assert from "node:assert/strict";
import { redis } from "@sluice/redis";
import { createLimiter } from "sluice";

process.stdout.write("");
const before = process.getActiveResourcesInfo();
const counters = redis(process.argv[2] ?? "", { deadlineMs: 20_000 });
const limiter = createLimiter({
  counters,
  policies: {
    policies: [{ id: `api-${process.version}`, limits: [{ by: ["user"], windows: ["2/h"] }], on_failure: "closed" }],
  },
});
await counters.connected(20_000);
const decisions = [];
for (let attempt = 1; attempt <= 3; attempt += 1) decisions.push(await limiter.check({ dimensions: { user: "ada" } }));
assert.deepEqual(
  decisions.map(({ allowed, reason }) => [allowed, reason]),
  [
    [true, "within_limits"],
    [true, "within_limits"],
    [false, "over_limit"],
  ],
);
await limiter.close();
// A socket that was destroyed is gone a turn later.
await new Promise((resolve) => setImmediate(resolve));
await new Promise((resolve) => setImmediate(resolve));
const left = process.getActiveResourcesInfo().filter((resource) => !before.includes(resource));
process.stdout.write(JSON.stringify(left));
