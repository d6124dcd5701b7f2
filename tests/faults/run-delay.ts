import { readFileSync } from "node:fs";

/** How long the main thread has been ready to run and had no core to run on, in total. Its thread id is that of the process. */
export function readRunDelayMs(): number {
  const [, delayNs] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ");
  return Number(delayNs) / 1e6;
}
