import { readdir } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { PartResult } from "../conformance-part.ts";
import { type CaseResult, judgeResults } from "../judge-results.ts";
import { cacheFolder, runMaven } from "../tool-cache.ts";
import { eventCases } from "./event-cases.ts";
import { policyCases } from "./policy-cases.ts";
import { secureCases } from "./secure-cases.ts";
import { startKafka } from "./start-kafka.ts";

const lib = path.join(cacheFolder, "kafka", "lib");
const pom = fileURLToPath(new URL("pom.xml", import.meta.url));

export const kafkaPart = {
  name: "kafka",
  summary: "policies and usage events by a real broker of Apache Kafka (needs Maven and Java 17)",
  /** Has nothing to do with an engine of gRPC. Throws `Missing` if the machine cannot play it. */
  async play(progress: (text: string) => void): Promise<PartResult> {
    progress("installing Kafka");
    await runMaven(["--file", pom, "dependency:copy-dependencies", `-DoutputDirectory=${lib}`]);
    const jars = await readdir(lib);
    const version = jars.map((jar) => /^kafka_2\.13-([\d.]+)\.jar$/.exec(jar)?.[1]).find(Boolean) ?? "unknown";
    const kafka = await startKafka(lib);
    const results: CaseResult[] = [];
    try {
      for (const one of [...policyCases, ...eventCases, ...secureCases]) {
        progress(one.name);
        const detail = await one.run(kafka).then(
          () => undefined,
          (error: Error) => error.message.split("\n")[0]!,
        );
        const outcome = detail === undefined ? "passed" : "failed";
        results.push({ id: one.name, name: one.name, outcome, detail: detail ?? "" });
      }
    } finally {
      await kafka.close();
    }
    return { part: "kafka", engine: "", peer: "Apache Kafka", version, ...judgeResults(results, []) };
  },
} as const;
