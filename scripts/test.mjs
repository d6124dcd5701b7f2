// npm test: everything that must hold before a change is merged. npm test -- <filter> runs only the matching tests.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ensureInstalled, exitCodeFromSignal, repositoryRoot } from "./ensure-installed.mjs";
import { ensureServers } from "./ensure-servers.mjs";
import { cleanCommit, recordTestedCommit } from "./release/git.mjs";
import { environmentFor, findNode, noNodeAdvice } from "./runtime.mjs";
import { countTests } from "./test-count.mjs";

const filter = process.argv.slice(2);
const commit = cleanCommit(repositoryRoot);
let passed = 0;
let failed = 0;

/** @type {string | undefined} */
let node;

await step("install", async () => {
  if (!(await succeeds(() => ensureInstalled()))) return false;
  node = findNode();
  if (node === undefined) process.stdout.write(noNodeAdvice());
  return node !== undefined;
});
if (failed > 0) finish();

// Tests that need a missing server fail; the others still run.
await step("servers", () => succeeds(ensureServers));
if (filter.length === 0) {
  await step("types", () => run("tsc", ["-b"]));
  await step("lint and format", () => run("biome", ["check", "--error-on-warnings"]));
  await step("generated files", () => run("node", ["scripts/generate.mjs", "--check"]));
}
await runTests();

finish();

/** @returns {never} */
function finish() {
  // `npm run release` need not run the tests of this commit again.
  if (failed === 0 && filter.length === 0 && commit !== undefined && cleanCommit(repositoryRoot) === commit) {
    recordTestedCommit(repositoryRoot, commit);
  }
  process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
  process.exit(failed === 0 ? 0 : 1);
}

/**
 * @param {string} name
 * @param {() => Promise<boolean>} check
 */
async function step(name, check) {
  const startedMs = performance.now();
  const ok = await check();
  if (ok) passed += 1;
  else failed += 1;
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  process.stdout.write(`${ok ? "✓" : "✗"} ${name} (${seconds} s)\n`);
}

/**
 * Whether it succeeded; prints why not.
 *
 * @param {() => Promise<unknown>} ensure
 * @returns {Promise<boolean>}
 */
async function succeeds(ensure) {
  try {
    await ensure();
    return true;
  } catch (error) {
    process.stdout.write(`${error instanceof Error ? error.message : error}\n`);
    return false;
  }
}

/** Counts single tests; the run itself counts, as failed, only if it fails outside any test. */
async function runTests() {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-test-"));
  const report = path.join(folder, "report.json");
  try {
    const args = ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`, ...filter];
    const ok = await run("vitest", args, "inherit");
    const count = countTests(readReport(report), {
      ok,
      byName: filter.some((arg) => /^(-t|--testNamePattern)/.test(arg)),
    });
    passed += count.passed;
    failed += count.failed;
    for (const problem of count.problems) process.stdout.write(`✗ ${problem}\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} file
 * @returns {unknown}
 */
function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

/**
 * Whether the tool exited with 0. Its output is shown only if it did not, unless the output is inherited.
 *
 * @param {string} tool
 * @param {readonly string[]} args
 * @param {"pipe" | "inherit"} output
 * @returns {Promise<boolean>}
 */
function run(tool, args, output = "pipe") {
  return new Promise((resolve) => {
    const child = spawn(tool, args, {
      cwd: repositoryRoot,
      env: environmentFor(String(node)),
      stdio: ["ignore", output, output],
    });
    /** @param {NodeJS.Signals} signal */
    const interrupt = (signal) => {
      child.kill(signal);
      process.exit(exitCodeFromSignal(signal));
    };
    process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
    let text = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk) => {
        text += chunk;
      });
    }
    child.once("error", (error) => {
      process.stdout.write(`${tool} could not be started: ${error.message}\n`);
      resolve(false);
    });
    child.once("close", (code) => {
      process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
      if (code !== 0) process.stdout.write(text);
      resolve(code === 0);
    });
  });
}
