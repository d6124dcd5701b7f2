import type { PolicyText } from "sluice/policy-text";
import { type JobAnswer, jobResult, startThread } from "../../job-thread.ts";
import { type ParsedPolicies, parseServedPolicies } from "./parse-served-policies.ts";

/** Less than this is parsed in the time that a thread takes to start. */
const largeLength = 256 * 1024;

/** `parseServedPolicies`, with large texts parsed in a separate thread, so that decisions do not wait for them. */
export async function parsePoliciesInWorker(
  files: readonly PolicyText[],
  large: number = largeLength,
): Promise<ParsedPolicies> {
  const length = files.reduce((sum, { text }) => sum + text.length, 0);
  return length < large ? parseServedPolicies(files) : jobResult(await parseInThread(files));
}

/** Without the bounds of what callers send: files are the operator's own, and seldom change. */
function parseInThread(files: readonly PolicyText[]): Promise<JobAnswer<ParsedPolicies>> {
  const thread = startThread({ module: new URL("parse-policies-worker.js", import.meta.url), input: files });
  return new Promise((resolve, reject) => {
    thread.once("message", resolve).once("error", reject);
    thread.once("exit", (code) => reject(new Error(`the thread that parses policies ended with ${code}`)));
  });
}
