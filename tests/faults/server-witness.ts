import { Worker } from "node:worker_threads";
import type { TestServer } from "@sluice/test-servers";

/**
 * Clocks of two threads differ by less than this, and a slow answer also affects questions a moment before or after.
 */
const marginMs = 10;

/**
 * Watches from another thread how quickly a server answers and whether the main thread gets a core, to distinguish an
 * overloaded machine from a stalled caller.
 */
export class ServerWitness {
  readonly #worker: Worker;
  readonly #slow: { readonly fromMs: number; readonly toMs: number }[] = [];

  constructor(server: TestServer) {
    this.#worker = new Worker(new URL("./witness-worker.ts", import.meta.url), { workerData: server.unixSocket });
    this.#worker.on("message", (slow) => this.#slow.push(slow));
  }

  /** Whether the server answered slowly, or the main thread had no core, between two moments by `performance.now()`. */
  sawSlowness(fromMs: number, toMs: number): boolean {
    const { timeOrigin } = performance;
    return this.#slow.some(
      (one) => one.toMs >= timeOrigin + fromMs - marginMs && one.fromMs <= timeOrigin + toMs + marginMs,
    );
  }

  get slowTimes(): number {
    return this.#slow.length;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
