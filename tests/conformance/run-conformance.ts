// npm run conformance: holds Sluice to tools, clients and servers that are not ours, and writes docs/conformance.md.
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { grpcEngines } from "../clients/contract/grpc-engines.ts";
import { clientParts } from "./client-parts.ts";
import { type ConformancePart, Missing, type PartResult } from "./conformance-part.ts";
import { envoyPart } from "./envoy/envoy-part.ts";
import { h2specPart } from "./h2spec/h2spec-part.ts";
import { kafkaPart } from "./kafka/kafka-part.ts";
import { renderConformancePage, replaceKafka } from "./render-conformance-page.ts";

const engineParts: readonly ConformancePart[] = [h2specPart, ...clientParts, envoyPart];
/** The last one has nothing to do with an engine. */
const parts = [...engineParts, kafkaPart];
const page = new URL("../../docs/conformance.md", import.meta.url);

const help = `npm run conformance [-- [part…] [--engine <name>]]

Holds Sluice to tools, clients and servers that are not ours. All parts together write docs/conformance.md; kafka
alone writes its section.

Parts:
${parts.map(({ name, summary }) => `  ${name.padEnd(9)} ${summary}`).join("\n")}

Options:
  --engine <name>  play one engine only (${grpcEngines.map(({ name }) => name).join(", ")})
  --help           show this help

Tools are installed into .sluice/conformance, from the registries that this machine is configured for.

Exit codes:
  0  every case passed, or is listed as an exception
  1  a case failed that is not listed, or passed although it is
  2  wrong usage
  3  nothing unexpected, but a part could not be played because something is missing
`;

const { values, positionals } = parse();
const isChosen = ({ name }: { readonly name: string }): boolean =>
  positionals.length === 0 || positionals.includes(name);
const engines = grpcEngines.filter(({ name }) => values.engine === undefined || name === values.engine);

const results: PartResult[] = [];
const missing: string[] = [];
for (const engine of engines)
  for (const part of engineParts.filter(isChosen))
    await playPart(part.name, engine.name, (progress) => part.play(engine, progress));
if (isChosen(kafkaPart)) await playPart("kafka", "policies and events", async (show) => [await kafkaPart.play(show)]);

const isComplete = parts.every(isChosen) && engines.length === grpcEngines.length && missing.length === 0;
const kafka = results.find(({ part }) => part === "kafka");
if (isComplete) {
  writeFileSync(page, renderConformancePage(results));
  process.stdout.write("wrote docs/conformance.md\n");
} else if (kafka !== undefined && !engineParts.some(isChosen)) {
  writeFileSync(page, replaceKafka(readFileSync(page, "utf8"), kafka));
  process.stdout.write("wrote the section about Kafka in docs/conformance.md\n");
} else if (missing.length > 0) {
  process.stdout.write(
    `docs/conformance.md stays as it is, because these could not be played: ${missing.join(", ")}\n`,
  );
}
const surprised = results.some(({ problems }) => problems.length > 0);
process.exit(surprised ? 1 : missing.length > 0 ? 3 : 0);

function parse() {
  try {
    const parsed = parseArgs({
      allowPositionals: true,
      options: { engine: { type: "string" }, help: { type: "boolean", short: "h" } },
    });
    if (parsed.values.help) {
      process.stdout.write(help);
      process.exit(0);
    }
    const { engine } = parsed.values;
    if (engine !== undefined && !grpcEngines.some(({ name }) => name === engine))
      throw new Error(`There is no engine "${engine}"`);
    const unknown = parsed.positionals.find((one) => !parts.some(({ name }) => name === one));
    if (unknown !== undefined) throw new Error(`There is no part "${unknown}"`);
    return parsed;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}; see npm run conformance -- --help\n`);
    process.exit(2);
  }
}

async function playPart(
  part: string,
  of: string,
  play: (progress: (text: string) => void) => Promise<readonly PartResult[]>,
): Promise<void> {
  const title = `${part} against ${of}`;
  const startedMs = performance.now();
  try {
    for (const result of await play((text) => showProgress(`${title}: ${text}`))) {
      results.push(result);
      const passed = result.cases.filter(({ outcome }) => outcome === "passed").length;
      const excepted = result.cases.filter(({ because }) => because !== undefined).length;
      const mark = result.problems.length === 0 ? "✓" : "✗";
      const counts = `${passed} of ${result.cases.length} passed, ${excepted} listed as exceptions`;
      showLine(`${mark} ${of}: ${result.peer} ${result.version}: ${counts}`);
      for (const problem of result.problems) showLine(`    ${problem}`);
    }
    showLine(`  ${title} took ${((performance.now() - startedMs) / 1_000).toFixed(0)} s`);
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    missing.push(part);
    showLine(`– ${title}: not played. ${error.message}`);
  }
}

/** On a terminal, one line that changes. */
function showProgress(text: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${text.slice(0, (process.stdout.columns ?? 80) - 1)}`);
}

function showLine(text: string): void {
  process.stdout.write(`${process.stdout.isTTY ? "\r\x1b[K" : ""}${text}\n`);
}
