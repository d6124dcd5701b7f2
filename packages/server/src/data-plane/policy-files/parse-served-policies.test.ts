import { type PolicySet, SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import { parsePoliciesInWorker } from "./parse-policies-in-worker.ts";
import { parseServedPolicies } from "./parse-served-policies.ts";

const rateLimits = (failOpen: boolean): string =>
  `rate_limits: [{ scope: user, resource: api, capacity: 5, refill_rate: 1 }]\nruntime: { fail_open: ${failOpen} }\n`;
const ownDefault = "policies: []\ndefault: { limits: [{ windows: [1/s] }], on_failure: open }\n";

function failModes({ policies, fallback }: PolicySet): unknown {
  return [...policies.map((one) => one.onFailure), fallback?.onFailure];
}

describe("the runtime block of the rate_limits format", () => {
  it("closes the default policy too if it says fail_open: false", () => {
    expect(failModes(parseServedPolicies([{ text: rateLimits(false) }]).policySet)).toEqual(["closed", "closed"]);
    expect(failModes(parseServedPolicies([{ text: rateLimits(true) }]).policySet)).toEqual(["open", "open"]);
  });

  it("leaves a default policy that was written as it is written", () => {
    const files = [{ text: rateLimits(false) }, { text: ownDefault }];
    expect(failModes(parseServedPolicies(files).policySet)).toEqual(["closed", "open"]);
  });
});

describe("parsing in a separate thread", () => {
  const files = [
    { file: "a.yaml", text: "policies: [{ id: a, limits: [{ by: [user], windows: [5/s] }] }]\n" },
    { file: "b.yaml", text: rateLimits(false) },
  ];

  it("reads what parsing here reads, warnings and places included", async () => {
    expect(await parsePoliciesInWorker(files, 0)).toEqual(parseServedPolicies(files));
  });

  it("reports every problem, each with its place", async () => {
    const bad = [{ file: "bad.yaml", text: "policies:\n  - id: a\n    limts: []\n  - id: 7\n" }];
    const error: unknown = await parsePoliciesInWorker(bad, 0).catch((thrown: unknown) => thrown);
    const expected: unknown = await parsePoliciesInWorker(bad).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SluiceError);
    expect(error).toMatchObject({ code: "invalid_policies", message: (expected as SluiceError).message });
    expect((error as SluiceError).problems).toEqual((expected as SluiceError).problems);
  });

  it("leaves this thread free meanwhile", async () => {
    let turns = 0;
    const turn = setInterval(() => turns++, 0);
    await parsePoliciesInWorker(files, 0);
    clearInterval(turn);
    expect(turns).toBeGreaterThan(0);
  });
});
