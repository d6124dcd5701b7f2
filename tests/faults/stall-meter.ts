import { setInterval } from "node:timers";
import { readRunDelayMs } from "./run-delay.ts";

const everyMs = 5;
/** Lateness below this is normal for timers. */
const noticedMs = 2;

interface Stall {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Records when this process was stalled, so that no server is blamed for it. Times are `performance.now()`. */
export class StallMeter {
  readonly #stalls: Stall[] = [];
  readonly #timer: NodeJS.Timeout;
  #lastMs: number = performance.now();
  #runDelayMs = readRunDelayMs();

  constructor() {
    this.#timer = setInterval(() => this.#look(), everyMs);
  }

  /** How long it was stalled between two moments. */
  within(fromMs: number, toMs: number): number {
    this.#look();
    let ms = 0;
    for (const stall of this.#stalls) ms += Math.max(0, Math.min(stall.toMs, toMs) - Math.max(stall.fromMs, fromMs));
    return ms;
  }

  get longestMs(): number {
    return Math.max(0, ...this.#stalls.map(({ fromMs, toMs }) => toMs - fromMs));
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const nowMs = performance.now();
    const lateMs = nowMs - this.#lastMs - everyMs;
    const runDelayMs = readRunDelayMs();
    // On a machine with busy neighbours a thread loses its core again and again, and each time for too short to be noticed as late.
    const lostMs = Math.max(lateMs > noticedMs ? lateMs : 0, runDelayMs - this.#runDelayMs);
    if (lostMs > 0) this.#stalls.push({ fromMs: nowMs - lostMs, toMs: nowMs });
    this.#lastMs = nowMs;
    this.#runDelayMs = runDelayMs;
  }
}
