import { createRequire } from "node:module";
import path from "node:path";
import type { Stranger } from "./stranger.ts";

const jest = createRequire(import.meta.url).resolve("jest/bin/jest");

/** How many tests of an app in CommonJS pass under Jest, in a project that has Express and the middleware. Throws if one fails. */
export async function runJest(project: Stranger, node: string, options: readonly string[] = []): Promise<number> {
  project.copyProgram("jest-app");
  const app = path.join(project.folder, "jest-app");
  const printed = await project.run(node, [...options, jest, "--rootDir", app, "--config", "{}", "--json"]);
  return (JSON.parse(printed) as { numPassedTests: number }).numPassedTests;
}
