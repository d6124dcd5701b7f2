import { parentPort } from "node:worker_threads";
import { answerJob } from "../../job-thread.ts";
import { threadJobs } from "./thread-jobs.ts";
import type { ThreadOrder } from "./worker-thread.ts";

parentPort?.on("message", ({ name, input }: ThreadOrder) =>
  parentPort?.postMessage(answerJob(() => (threadJobs[name] as (given: unknown) => unknown)(input))),
);
