import { setTimeout as sleep } from "node:timers/promises";
import type { CheckRequest, Decision, Limiter } from "sluice";
import { type Line, lines, probeLines } from "./fault-policies.ts";

/** One check, from the call to its answer. Times are `performance.now()`. */
export interface Checked {
  readonly line: Line;
  readonly user: string;
  readonly startedMs: number;
  settledMs: number | undefined;
  /** Something was sent for it, as far as visible from outside: it was not answered at once. */
  asked: boolean;
  decision: Decision | undefined;
  error: unknown;
}

export function createRequest(line: Line, user: string, id?: string): CheckRequest {
  return { dimensions: { endpoint: `/${line}`, user }, id };
}

const tickMs = 5;

/** Sends checks at a steady pace, whatever their outcome, and records every answer. */
export class Traffic {
  readonly checks: Checked[] = [];
  readonly #limiter: Limiter;
  readonly #users: readonly string[];
  #going: Promise<void> | undefined;
  #stopped = false;

  constructor(limiter: Limiter, users: readonly string[]) {
    this.#limiter = limiter;
    this.#users = users;
  }

  start(): void {
    this.#going ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#going;
  }

  check(line: Line, user: string, id?: string): Promise<Checked> {
    const checked: Checked = {
      line,
      user,
      startedMs: performance.now(),
      settledMs: undefined,
      asked: false,
      decision: undefined,
      error: undefined,
    };
    this.checks.push(checked);
    const settled = this.#limiter.check(createRequest(line, user, id)).then(
      (decision) => {
        checked.settledMs = performance.now();
        checked.decision = decision;
        return checked;
      },
      (error: unknown) => {
        checked.settledMs = performance.now();
        checked.error = error;
        return checked;
      },
    );
    setImmediate(() => {
      checked.asked = checked.settledMs === undefined;
    });
    return settled;
  }

  /** Many independent checks, some at a time. */
  async flood(line: Line, count: number): Promise<readonly Checked[]> {
    const all: Promise<Checked>[] = [];
    for (let i = 0; i < count; i++) {
      all.push(this.check(line, this.#users[i % this.#users.length]!));
      if (i % 50 === 49) await sleep(1);
    }
    return Promise.all(all);
  }

  async #run(): Promise<void> {
    const tight = lines.filter((line) => !probeLines.includes(line));
    for (let tick = 0; !this.#stopped; tick++) {
      for (const line of [...probeLines, tight[tick % tight.length]!]) {
        void this.check(line, this.#users[Math.floor(tick / tight.length) % this.#users.length]!);
      }
      await sleep(tickMs);
    }
  }
}
