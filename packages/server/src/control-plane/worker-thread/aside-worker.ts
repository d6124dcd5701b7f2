import { parentPort } from "node:worker_threads";
import { answerJob } from "../../job-thread.ts";
import type { AsideOrder } from "./aside.ts";
import { asideJobs } from "./aside-jobs.ts";

parentPort?.on("message", ({ name, input }: AsideOrder) =>
  parentPort?.postMessage(answerJob(() => (asideJobs[name] as (given: unknown) => unknown)(input))),
);
