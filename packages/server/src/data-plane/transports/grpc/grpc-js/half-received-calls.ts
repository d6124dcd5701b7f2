import { DeadlineOver } from "../errors.ts";
import type { OpenCall } from "./open-call.ts";

/** Calls with a half-received message. Those whose message takes too long to arrive end. */
export class HalfReceivedCalls {
  readonly #withinMs: number;
  readonly #end: (call: OpenCall, error: DeadlineOver) => void;
  /** Oldest first. */
  readonly #calls = new Set<OpenCall>();
  readonly #sweep: NodeJS.Timeout;

  constructor(withinMs: number, end: (call: OpenCall, error: DeadlineOver) => void) {
    this.#withinMs = withinMs;
    this.#end = end;
    this.#sweep = setInterval(() => this.#endOverdue(), Math.max(withinMs / 6, 10)).unref();
  }

  note(call: OpenCall, half: boolean): void {
    if (half) this.#calls.add(call);
    else this.#calls.delete(call);
  }

  close(): void {
    clearInterval(this.#sweep);
  }

  #endOverdue(): void {
    const nowMs = performance.now();
    for (const call of this.#calls) {
      if (nowMs - call.halfSinceMs < this.#withinMs) return;
      this.#calls.delete(call);
      // This server has paused the stream, so the delay is not the client's.
      if (call.method.kind === "stream" && call.stream.isPaused()) {
        call.halfSinceMs = nowMs;
        this.#calls.add(call);
        continue;
      }
      this.#end(call, new DeadlineOver(`the request was not complete after ${this.#withinMs} ms; nothing was decided`));
    }
  }
}
