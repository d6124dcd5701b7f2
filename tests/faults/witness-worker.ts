// Asks a server for a PONG over its Unix socket every few milliseconds, from a separate thread, and reports what took long. It also
// reports when the main thread was ready to run and had no core to run on.
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

const everyMs = 4;
const slowMs = 6;

const socket = connect(workerData as string);
let sentMs = 0;
let waiting = false;

// A server that is killed ends the watch; its state is then known by other means.
socket.on("error", () => socket.destroy());
socket.on("data", () => {
  const nowMs = performance.timeOrigin + performance.now();
  if (nowMs - sentMs > slowMs) parentPort?.postMessage({ fromMs: sentMs, toMs: nowMs });
  waiting = false;
});
/** How long the main thread has waited for a core in total. Its thread id is that of the process. */
function runDelayMs(): number {
  const [, delayNs] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ");
  return Number(delayNs) / 1e6;
}

let lookedMs = performance.timeOrigin + performance.now();
let delayMs = runDelayMs();
setInterval(() => {
  const fromMs = lookedMs;
  const delayBeforeMs = delayMs;
  lookedMs = performance.timeOrigin + performance.now();
  delayMs = runDelayMs();
  if (delayMs - delayBeforeMs > slowMs) parentPort?.postMessage({ fromMs, toMs: lookedMs });
  if (waiting) return;
  waiting = true;
  sentMs = performance.timeOrigin + performance.now();
  socket.write("PING\r\n");
}, everyMs);
