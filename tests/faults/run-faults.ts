// npm run faults [-- <part of a name> [valkey|redis]]: plays faults on real servers. All of them together write docs/faults.md.
import { writeFileSync } from "node:fs";
import { flavors } from "@sluice/test-servers";
import type { FaultResult } from "./fault-result.ts";
import { faultScenarios } from "./fault-scenarios.ts";
import { renderFaultPage } from "./render-fault-page.ts";

const [part = "", flavorAsked] = process.argv.slice(2);
const scenarios = faultScenarios.filter(({ name }) => name.includes(part));
const results: FaultResult[] = [];

for (const scenario of scenarios) {
  for (const flavor of flavors.filter((one) => flavorAsked === undefined || one === flavorAsked)) {
    const beganMs = performance.now();
    const result = await scenario.play(flavor);
    results.push(result);
    const seconds = ((performance.now() - beganMs) / 1000).toFixed(1);
    process.stdout.write(`${result.breaches.length === 0 ? "✓" : "✗"} ${scenario.name} on ${flavor} (${seconds} s)\n`);
    for (const breach of result.breaches) process.stdout.write(`    ${breach}\n`);
    if (part !== "") process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
  }
}

if (results.length === 0) process.stdout.write(`There is no fault with "${part}" in its name.\n`);
if (part === "" && flavorAsked === undefined) {
  writeFileSync(new URL("../../docs/faults.md", import.meta.url), renderFaultPage(scenarios, results));
  process.stdout.write("wrote docs/faults.md\n");
}
process.exitCode = results.length > 0 && results.every(({ breaches }) => breaches.length === 0) ? 0 : 1;
