import { readFileSync } from "node:fs";
import path from "node:path";
import { repositoryRoot } from "./ensure-installed.mjs";

/** The alerts, where the Helm chart can read them: helm reads nothing outside the chart. */
export function renderChartAlerts() {
  return readFileSync(path.join(repositoryRoot, "examples/prometheus/alerts.yaml"), "utf8");
}
