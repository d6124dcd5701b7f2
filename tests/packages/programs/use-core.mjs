// What a stranger does with `sluice`, in plain JavaScript. Prints "done", or fails.
import assert from "node:assert/strict";
import { createLimiter, limit, ManualClock, renderExplanation, renderHeaders, SluiceError } from "sluice";
import { parsePolicyText } from "sluice/policy-text";
import { decideCount } from "sluice/store";
import { counterStoreContract } from "sluice/testing";

const { policySet, warnings } = parsePolicyText(
  `
policies:
  - id: api
    limits:
      - { by: [user], windows: [5/m] }
    on_failure: open
`,
  { file: "policies.yaml" },
);
assert.deepEqual(warnings, []);

const limiter = createLimiter({ policies: policySet, clock: new ManualClock() });
const dimensions = { user: "ada" };

const first = await limiter.check({ dimensions, cost: 2, receipt: true });
assert.equal(first.allowed, true);
assert.equal(first.remaining, 3);
assert.equal(renderHeaders(first)["X-RateLimit-Remaining"], "3");

assert.equal(first.receipt !== undefined && (await limiter.give(first.receipt)), true);
assert.equal(limiter.checkSync({ dimensions }).remaining, 4);

await limiter.charge({ dimensions, cost: 4 });
const denied = await limiter.check({ dimensions });
assert.equal(denied.allowed, false);
assert.equal(denied.reason, "over_limit");
assert.equal(denied.retryAfterMs, 12_000);
assert.match(renderExplanation(await limiter.explain({ dimensions })), /DENIED by api \/ user/);

await limiter.reset({ dimensions });
assert.equal(limiter.checkSync({ dimensions, preview: true }).remaining, 5);

assert.throws(
  () => limiter.usePolicies({ policies: [{ id: "api", limts: [] }] }),
  (error) => error instanceof SluiceError && error.code === "invalid_policies",
);
assert.throws(
  () => parsePolicyText("policies: [{ id: api, limts: [] }]", { file: "policies.yaml" }),
  (error) => error instanceof SluiceError && error.problems[0]?.place?.line === 1,
);
const logins = limit("1/h").by("ip");
assert.equal((await logins.check("203.0.113.7")).allowed, true);
assert.equal((await logins.check("203.0.113.7")).allowed, false);

assert.equal(typeof decideCount, "function");
assert.ok(counterStoreContract.length > 10);

await limiter.close();
process.stdout.write("done\n");
