import { Worker } from "node:worker_threads";
import { type Problem, SluiceError } from "sluice";
import type { ParsedPolicyFiles, PolicyText } from "sluice/policy-text";
import { parsePolicies } from "./parse-policies.ts";

/** What the worker answers. Errors lose their class between threads, so they travel as plain data. */
export type ParseAnswer =
  | { readonly kind: "parsed"; readonly parsed: ParsedPolicyFiles }
  | { readonly kind: "refused"; readonly message: string; readonly problems: readonly Problem[] };

/** Less than this is parsed in the time that a worker takes to start. */
const largeLength = 256 * 1024;

/** `parsePolicies`, with large texts parsed in a thread of their own, so that decisions do not wait for them. */
export async function parsePoliciesAside(
  files: readonly PolicyText[],
  large: number = largeLength,
): Promise<ParsedPolicyFiles> {
  const length = files.reduce((sum, { text }) => sum + text.length, 0);
  if (length < large) return parsePolicies(files);
  const answer = await askWorker(files);
  if (answer.kind === "parsed") return answer.parsed;
  throw new SluiceError("invalid_policies", answer.message, answer.problems);
}

function askWorker(files: readonly PolicyText[]): Promise<ParseAnswer> {
  // From source the worker is TypeScript as well, and finds the other packages' sources.
  const fromSource = import.meta.url.endsWith(".ts");
  const worker = new Worker(new URL(`parse-policies-worker.${fromSource ? "ts" : "js"}`, import.meta.url), {
    workerData: files,
    execArgv: fromSource ? ["--conditions=source"] : [],
  });
  worker.unref();
  return new Promise((resolve, reject) => {
    worker.once("message", resolve).once("error", reject);
    worker.once("exit", (code) => reject(new Error(`the thread that parses policies ended with ${code}`)));
  });
}
