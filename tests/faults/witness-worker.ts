// Asks a server for a PONG over its Unix socket every few milliseconds, from a thread of its own, and reports what took long.
import { connect } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

const everyMs = 4;
const slowMs = 6;

const socket = connect(workerData as string);
let sentMs = 0;
let waiting = false;

// A server that is killed ends the watch; what it was then is told by other means.
socket.on("error", () => socket.destroy());
socket.on("data", () => {
  const nowMs = performance.timeOrigin + performance.now();
  if (nowMs - sentMs > slowMs) parentPort?.postMessage({ fromMs: sentMs, toMs: nowMs });
  waiting = false;
});
setInterval(() => {
  if (waiting) return;
  waiting = true;
  sentMs = performance.timeOrigin + performance.now();
  socket.write("PING\r\n");
}, everyMs);
