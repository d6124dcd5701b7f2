/**
 * @typedef {{ fullName: string, status: string }} TestReport
 * @typedef {{ name: string, status: string, message?: string, assertionResults: TestReport[] }} FileReport
 */

/**
 * Counts vitest's JSON report. A test that was skipped or is a todo counts as failed, because it proves nothing; so does a
 * file that could not be loaded, a run that failed outside any test, and a run that left no report.
 *
 * @param {unknown} report
 * @param {{ ok: boolean, byName: boolean }} run whether vitest ended with 0, and whether tests were chosen by name, which
 *   skips all others
 * @returns {{ passed: number, failed: number, problems: string[] }}
 */
export function countTests(report, run) {
  const files = findFiles(report);
  if (files === undefined) return { passed: 0, failed: 1, problems: ["vitest ended without a report"] };
  let passed = 0;
  let failed = 0;
  const problems = [];
  for (const file of files) {
    let failedHere = 0;
    for (const test of file.assertionResults) {
      if (test.status === "passed") passed += 1;
      else if (test.status === "failed") failedHere += 1;
      else if (!run.byName) {
        failedHere += 1;
        problems.push(`${file.name}: "${test.fullName}" was not run (${test.status})`);
      }
    }
    if (failedHere === 0 && file.status === "failed") {
      failedHere = 1;
      problems.push(`${file.name} could not be run`);
    }
    failed += failedHere;
  }
  if (failed === 0 && !run.ok) {
    failed = 1;
    problems.push("vitest failed outside of any test");
  }
  return { passed, failed, problems };
}

/**
 * @param {unknown} report
 * @returns {FileReport[] | undefined}
 */
function findFiles(report) {
  if (typeof report !== "object" || report === null || !("testResults" in report)) return undefined;
  return Array.isArray(report.testResults) ? report.testResults : undefined;
}
