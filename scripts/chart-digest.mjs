import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { repositoryRoot } from "./ensure-installed.mjs";

export const chartFolder = path.join(repositoryRoot, "deploy/helm/sluice");
/** Values to render the chart with, what helm made of them, and values that it must refuse. */
export const chartCases = path.join(repositoryRoot, "tests/deploy/charts");

/** The cases by name: those with a file of values. */
export function listChartCases() {
  const suffix = ".values.yaml";
  return readdirSync(chartCases)
    .filter((name) => name.endsWith(suffix))
    .map((name) => name.slice(0, -suffix.length))
    .toSorted();
}

/** A digest of the chart and of the cases. As long as it is the recorded one, the rendered manifests are current. */
export function digestChart() {
  const files = [
    ...readdirSync(chartFolder, { recursive: true, encoding: "utf8" }).map((name) => path.join(chartFolder, name)),
    ...listChartCases().map((name) => path.join(chartCases, `${name}.values.yaml`)),
    path.join(chartCases, "refused.json"),
    // The copy of the alerts, which have tests of their own.
  ].filter((file) => statSync(file).isFile() && path.basename(file) !== "alerts.yaml");
  const hash = createHash("sha256");
  for (const file of files.toSorted())
    hash.update(`${path.relative(repositoryRoot, file)}\0`).update(readFileSync(file));
  return hash.digest("hex");
}
