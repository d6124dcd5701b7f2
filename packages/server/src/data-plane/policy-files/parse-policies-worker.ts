import { parentPort, workerData } from "node:worker_threads";
import type { PolicyText } from "sluice/policy-text";
import { answerJob } from "../../job-thread.ts";
import { parseServedPolicies } from "./parse-served-policies.ts";

parentPort?.postMessage(answerJob(() => parseServedPolicies(workerData as readonly PolicyText[])));
