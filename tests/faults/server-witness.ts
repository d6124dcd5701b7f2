import { Worker } from "node:worker_threads";
import type { TestServer } from "@sluice/test-servers";

/**
 * Clocks of two threads differ by less than this, and a slow answer also affects questions a moment before or after.
 */
const marginMs = 10;
/** A check that lost this much time is late for that reason. */
const slowMs = 6;

/**
 * Watches from another thread how quickly a server answers and whether the main thread gets a core, to distinguish an
 * overloaded machine from a stalled caller.
 */
export class ServerWitness {
  readonly #worker: Worker;
  readonly #lost: { readonly fromMs: number; readonly toMs: number; readonly lostMs: number }[] = [];

  constructor(server: TestServer) {
    this.#worker = new Worker(new URL("./witness-worker.ts", import.meta.url), { workerData: server.unixSocket });
    this.#worker.on("message", (lost) => this.#lost.push(lost));
  }

  /** Whether the server answered slowly, or the main thread had no core, between two moments by `performance.now()`. */
  sawSlowness(fromMs: number, toMs: number): boolean {
    const { timeOrigin } = performance;
    const lostMs = this.#lost
      .filter((one) => one.toMs >= timeOrigin + fromMs - marginMs && one.fromMs <= timeOrigin + toMs + marginMs)
      .reduce((sum, one) => sum + one.lostMs, 0);
    return lostMs >= slowMs;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
