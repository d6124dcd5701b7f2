import { parentPort } from "node:worker_threads";
import { SluiceError } from "sluice";
import type { AsideAnswer, AsideOrder } from "./aside.ts";
import { asideJobs } from "./aside-jobs.ts";

function answer({ name, input }: AsideOrder): AsideAnswer {
  try {
    return { kind: "done", result: (asideJobs[name] as (given: unknown) => unknown)(input) };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return { kind: "refused", code: error.code, message: error.message, problems: error.problems };
  }
}

parentPort?.on("message", (order: AsideOrder) => parentPort?.postMessage(answer(order)));
