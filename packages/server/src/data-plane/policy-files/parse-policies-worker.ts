import { parentPort, workerData } from "node:worker_threads";
import { SluiceError } from "sluice";
import type { PolicyText } from "sluice/policy-text";
import { parsePolicies } from "./parse-policies.ts";
import type { ParseAnswer } from "./parse-policies-aside.ts";

function parse(files: readonly PolicyText[]): ParseAnswer {
  try {
    return { kind: "parsed", parsed: parsePolicies(files) };
  } catch (error) {
    if (!(error instanceof SluiceError) || error.code !== "invalid_policies") throw error;
    return { kind: "refused", message: error.message, problems: error.problems };
  }
}

parentPort?.postMessage(parse(workerData as readonly PolicyText[]));
