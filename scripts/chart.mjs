// npm run chart: renders the Helm chart with helm, checks it against Kubernetes' own types, and records the result.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { chartCases, chartFolder, digestChart, listChartCases } from "./chart-digest.mjs";
import { repositoryRoot } from "./ensure-installed.mjs";

const helmVersion = "v3.19.0";
const tools = path.join(repositoryRoot, ".sluice", "tools");
const kube = ["--kube-version", "1.31.0", "--namespace", "rate-limits"];

const helm = findHelm();
const stage = mkdtempSync(path.join(tmpdir(), "sluice-chart-"));
try {
  checkRefusals();
  const rendered = listChartCases().map((name) => ({ name, text: render(name) }));
  const files = rendered.map(({ name, text }) => {
    const file = path.join(stage, `${name}.yaml`);
    writeFileSync(file, text);
    return file;
  });
  run("go", ["run", ".", ...files], path.join(chartCases, "strict"));
  for (const { name, text } of rendered) writeFileSync(path.join(chartCases, `${name}.rendered.yaml`), text);
  writeFileSync(path.join(chartCases, "digest"), `${digestChart()}\n`);
  process.stdout.write(`${rendered.length} cases rendered by helm ${helmVersion}, and recorded\n`);
} finally {
  rmSync(stage, { recursive: true, force: true });
}

function findHelm() {
  const found = spawnSync("helm", ["version", "--template", "{{.Version}}"], { encoding: "utf8" });
  if (found.stdout?.trim() === helmVersion) return "helm";
  const own = path.join(tools, "helm");
  if (!existsSync(own)) {
    process.stdout.write(`Building helm ${helmVersion} with go, which takes a few minutes…\n`);
    run("go", ["install", `helm.sh/helm/v3/cmd/helm@${helmVersion}`], repositoryRoot, { GOBIN: tools });
  }
  return own;
}

/** @param {string} name */
function render(name) {
  const values = path.join(chartCases, `${name}.values.yaml`);
  run(helm, ["lint", "--strict", chartFolder, "--values", values, "--kube-version", "1.31.0"], stage);
  return run(helm, ["template", "sluice", chartFolder, "--values", values, ...kube], stage);
}

/** Values with a mistake fail, and the message names it. */
function checkRefusals() {
  /** @type {readonly { values: object, because: string }[]} */
  const refusals = JSON.parse(readFileSync(path.join(chartCases, "refused.json"), "utf8"));
  for (const { values, because } of refusals) {
    const file = path.join(stage, "refused.json");
    writeFileSync(file, JSON.stringify(values));
    const { status, stderr } = spawnSync(helm, ["template", "sluice", chartFolder, "--values", file, ...kube], {
      encoding: "utf8",
    });
    if (status !== 0 && stderr.includes(because)) continue;
    fail(`${JSON.stringify(values)} should be refused because of ${because}, but helm said:\n${stderr || "nothing"}`);
  }
}

/**
 * @param {string} tool
 * @param {readonly string[]} args
 * @param {string} cwd
 * @param {NodeJS.ProcessEnv} [env]
 */
function run(tool, args, cwd, env = {}) {
  const { status, stdout, stderr, error } = spawnSync(tool, args, {
    cwd,
    env: { ...process.env, ...env },
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error !== undefined) fail(`${tool} cannot be started: ${error.message}. npm run chart needs Go 1.24 or later`);
  if (status !== 0) fail(`${tool} ${args[0]} failed:\n${stdout}${stderr}`);
  return stdout;
}

/**
 * @param {string} message
 * @returns {never}
 */
function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
