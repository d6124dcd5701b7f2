import { createLimiter, type PolicySet, parsePolicies } from "sluice";
import { expect, it } from "vitest";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { createPoliciesInForce } from "./policies-in-force.ts";

const policy = (id: string, limit: number): Record<string, unknown> => ({
  id,
  limits: [{ by: ["user"], windows: [`${limit}/h`] }],
  on_failure: "open",
});
const parse = (...policies: readonly Record<string, unknown>[]): PolicySet => parsePolicies({ policies });

it("applies files and store, each without losing the other, and logs each conflict once", () => {
  const lines: LoggedLine[] = [];
  const limiter = createLimiter({ policies: parse(policy("p", 1)) });
  const inForce = createPoliciesInForce({
    limiter,
    files: limiter.snapshot.policySet,
    precedence: "files",
    log: createRecordingLog((line) => lines.push(line)),
    onUsed: () => undefined,
  });
  const ids = (): readonly string[] => limiter.snapshot.policySet.policies.map(({ id }) => id);
  inForce.useStored(() => parse(policy("p", 2), policy("q", 2)));
  expect(ids()).toEqual(["p", "q"]);
  inForce.useFiles(parse(policy("p", 3), policy("r", 3)));
  expect(ids()).toEqual(["p", "r", "q"]);
  inForce.useStored(() => parse(policy("p", 4), policy("r", 4)));
  expect(ids()).toEqual(["p", "r"]);
  expect(lines.map(({ level, fields }) => [level, fields.policies])).toEqual([
    ["warn", ["policy p"]],
    ["warn", ["policy r"]],
  ]);
  inForce.useFiles(parse());
  expect(inForce.overridden).toEqual([]);
  inForce.useFiles(parse(policy("p", 3)));
  expect(lines).toHaveLength(3);
});

it("changes nothing if the limiter cannot use the policies", () => {
  const limiter = createLimiter({ policies: parse(policy("p", 1)) });
  const log = createRecordingLog(() => undefined);
  const files = limiter.snapshot.policySet;
  const inForce = createPoliciesInForce({ limiter, files, precedence: "files", log, onUsed: () => undefined });
  const broken = (): PolicySet => {
    throw new Error("cannot be composed");
  };
  expect(() => inForce.useStored(broken)).toThrow("cannot be composed");
  inForce.useFiles(parse(policy("q", 1)));
  expect(limiter.snapshot.policySet.policies.map(({ id }) => id)).toEqual(["q"]);
});
