import { Worker } from "node:worker_threads";
import type { Problem } from "sluice";
import { invalidPolicies } from "./control-errors.ts";
import { type ImportedConfiguration, readImport } from "./read-import.ts";

/** What the worker answers. Errors lose their class between threads, so they travel as plain data. */
export type ImportAnswer =
  | { readonly kind: "read"; readonly imported: ImportedConfiguration }
  | { readonly kind: "refused"; readonly problems: readonly Problem[] };

/** Less than this is read in the time that a worker takes to start. */
const largeLength = 256 * 1024;

/** `readImport`, with large texts read in a thread of their own, so that decisions do not wait for them. */
export async function readImportAside(text: string, large: number = largeLength): Promise<ImportedConfiguration> {
  if (text.length < large) return readImport(text);
  const answer = await askWorker(text);
  if (answer.kind === "read") return answer.imported;
  throw invalidPolicies(answer.problems);
}

function askWorker(text: string): Promise<ImportAnswer> {
  // From source the worker is TypeScript as well, and finds the other packages' sources.
  const fromSource = import.meta.url.endsWith(".ts");
  const worker = new Worker(new URL(`read-import-worker.${fromSource ? "ts" : "js"}`, import.meta.url), {
    workerData: text,
    execArgv: fromSource ? ["--conditions=source"] : [],
  });
  worker.unref();
  return new Promise((resolve, reject) => {
    worker.once("message", resolve).once("error", reject);
    worker.once("exit", (code) => reject(new Error(`the thread that reads policies ended with ${code}`)));
  });
}
