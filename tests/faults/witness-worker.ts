// Asks a server for a PONG over its Unix socket every few milliseconds, from a separate thread, and reports how much longer
// than usual it took. It also reports how long the main thread was ready to run and had no core to run on.
import { connect } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { readRunDelayMs } from "./run-delay.ts";

const everyMs = 4;
/** An answer within this is prompt. */
const promptMs = 1;

const socket = connect(workerData as string);
let sentMs = 0;
let waiting = false;

// A server that is killed ends the watch; its state is then known by other means.
socket.on("error", () => socket.destroy());
socket.on("data", () => {
  const nowMs = performance.timeOrigin + performance.now();
  report(sentMs, nowMs, nowMs - sentMs - promptMs);
  waiting = false;
});

function report(fromMs: number, toMs: number, lostMs: number): void {
  if (lostMs > 0) parentPort?.postMessage({ fromMs, toMs, lostMs });
}

let lookedMs = performance.timeOrigin + performance.now();
let delayMs = readRunDelayMs();
setInterval(() => {
  const fromMs = lookedMs;
  const delayBeforeMs = delayMs;
  lookedMs = performance.timeOrigin + performance.now();
  delayMs = readRunDelayMs();
  report(fromMs, lookedMs, delayMs - delayBeforeMs);
  if (waiting) return;
  waiting = true;
  sentMs = performance.timeOrigin + performance.now();
  socket.write("PING\r\n");
}, everyMs);
