import { describe, expect, it } from "vitest";
import { countTests } from "../../scripts/test-count.mjs";

function report(status: string, ...tests: string[]): unknown {
  const assertionResults = tests.map((one, index) => ({ fullName: `test ${index}`, status: one }));
  return { testResults: [{ name: "a.test.ts", status, assertionResults }] };
}

const wholeRun = { ok: true, byName: false };
const brokenRun = { ok: false, byName: false };

describe("the count that npm test ends with", () => {
  it("has every test", () => {
    expect(countTests(report("passed", "passed", "passed"), wholeRun)).toEqual({ passed: 2, failed: 0, problems: [] });
    expect(countTests(report("failed", "passed", "failed"), brokenRun)).toEqual({ passed: 1, failed: 1, problems: [] });
  });

  it.each(["skipped", "pending", "todo", "disabled"])("has a %s test among the failed", (status) => {
    expect(countTests(report("passed", "passed", status), wholeRun)).toMatchObject({ passed: 1, failed: 1 });
  });

  it("leaves out tests skipped by a name filter", () => {
    const byName = { ok: true, byName: true };
    expect(countTests(report("passed", "passed", "skipped"), byName)).toMatchObject({ passed: 1, failed: 0 });
  });

  it("has a file that could not be loaded among the failed", () => {
    expect(countTests(report("failed"), brokenRun)).toMatchObject({ passed: 0, failed: 1 });
  });

  it("has a run that broke outside of any test among the failed", () => {
    expect(countTests(report("passed", "passed"), brokenRun)).toMatchObject({ passed: 1, failed: 1 });
  });

  it("has a run without a report among the failed", () => {
    expect(countTests(undefined, brokenRun)).toMatchObject({ passed: 0, failed: 1 });
    expect(countTests({}, wholeRun)).toMatchObject({ passed: 0, failed: 1 });
  });
});
