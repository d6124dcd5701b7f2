import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { readSourceTree } from "../repository/source-tree.ts";
import { collectPromises } from "./collect-promises.ts";
import { findBrokenPromises, type Promises } from "./find-broken-promises.ts";
import { findProtocolBreaks, writeProtocolImage } from "./protocol-image.ts";

const folder = path.join(import.meta.dirname, "promised");

/** What was promised with the newest release, as `npm run release -- --prepare` recorded it. */
export function readRecordedPromises(): Promises {
  const files = readdirSync(folder).filter((file) => file.endsWith(".txt"));
  return Object.fromEntries(
    files.map((file) => [
      file.slice(0, -".txt".length),
      readFileSync(path.join(folder, file), "utf8")
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith("# ")),
    ]),
  );
}

/** Records what this version promises. Refuses to if it breaks a promise, unless a major version begins, which may. */
export async function recordPromises(): Promise<void> {
  const { version } = JSON.parse(readSourceTree().get("package.json") ?? "") as { version: string };
  const current = await collectPromises();
  const isMajor = /^\d+\.0\.0(-|$)/.test(version);
  if (!isMajor) {
    const broken = [...findBrokenPromises(readRecordedPromises(), current), ...findProtocolBreaks()];
    if (broken.length > 0) throw new Error(`${version} may not break what was promised:\n  ${broken.join("\n  ")}`);
  }
  mkdirSync(folder, { recursive: true });
  for (const [name, lines] of Object.entries(current)) {
    const title = `# Promised since ${version}: docs/compatibility.md. Recorded by npm run release -- --prepare.`;
    writeFileSync(path.join(folder, `${name}.txt`), `${[title, ...lines].join("\n")}\n`);
  }
  writeProtocolImage();
}
