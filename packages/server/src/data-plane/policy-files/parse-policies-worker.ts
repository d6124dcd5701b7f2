import { parentPort, workerData } from "node:worker_threads";
import type { PolicyText } from "sluice/policy-text";
import { answerJob } from "../../job-thread.ts";
import { parsePolicies } from "./parse-policies.ts";

parentPort?.postMessage(answerJob(() => parsePolicies(workerData as readonly PolicyText[])));
