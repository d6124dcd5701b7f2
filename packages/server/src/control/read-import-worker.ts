import { parentPort, workerData } from "node:worker_threads";
import { SluiceError } from "sluice";
import { readImport } from "./read-import.ts";
import type { ImportAnswer } from "./read-import-aside.ts";

function read(text: string): ImportAnswer {
  try {
    return { kind: "read", imported: readImport(text) };
  } catch (error) {
    if (!(error instanceof SluiceError) || error.code !== "invalid_policies") throw error;
    return { kind: "refused", problems: error.problems };
  }
}

parentPort?.postMessage(read(workerData as string));
