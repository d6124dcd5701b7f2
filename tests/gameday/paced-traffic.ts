import { setTimeout as sleep } from "node:timers/promises";
import type { CheckRequest, DegradedReason, Limiter } from "sluice";
import { Paces, tickMs } from "../leases/drive-traffic.ts";

/** A check that was sent, and what came back. Times are `performance.now()`. */
export interface Sent {
  readonly subject: string;
  readonly startedMs: number;
  settledMs: number | undefined;
  allowed: boolean;
  degraded: DegradedReason | undefined;
  error: unknown;
}

/** How often each subject asks, so many milliseconds after the beginning. */
export type Rates = (elapsedMs: number) => Iterable<readonly [subject: string, perSecond: number]>;

/** After a stall of the machine, this much of what was due is sent; the rest never. */
const mostLateMs = 250;

/** Sends checks at given rates, each through one of several limiters at random, whatever is answered; and notes every answer. */
export class PacedTraffic {
  readonly sent: Sent[] = [];
  readonly #limiters: readonly Pick<Limiter, "check">[];
  readonly #createRequest: (subject: string) => CheckRequest;
  readonly #random: () => number;
  readonly #paces = new Paces();
  readonly #pending = new Set<Promise<void>>();

  constructor(
    limiters: readonly Pick<Limiter, "check">[],
    createRequest: (subject: string) => CheckRequest,
    random: () => number,
  ) {
    this.#limiters = limiters;
    this.#createRequest = createRequest;
    this.#random = random;
  }

  /** Until it has lasted so long, or until the signal; then waits for all answers. */
  async run(rates: Rates, forMs: number, signal?: AbortSignal): Promise<void> {
    const beganMs = performance.now();
    let ticks = 0;
    for (;;) {
      const elapsedMs = performance.now() - beganMs;
      if (elapsedMs >= forMs || signal?.aborted === true) break;
      const due = Math.floor(elapsedMs / tickMs);
      ticks = Math.max(ticks, due - mostLateMs / tickMs);
      for (; ticks < due; ticks++) {
        for (const [subject, perSecond] of rates(elapsedMs)) {
          const count = this.#paces.next(subject, perSecond);
          for (let i = 0; i < count; i++) this.#send(subject);
        }
      }
      await sleep(tickMs);
    }
    await Promise.all(this.#pending);
  }

  #send(subject: string): void {
    const one: Sent = {
      subject,
      startedMs: performance.now(),
      settledMs: undefined,
      allowed: false,
      degraded: undefined,
      error: undefined,
    };
    this.sent.push(one);
    const limiter = this.#limiters[Math.floor(this.#random() * this.#limiters.length)]!;
    const noted: Promise<void> = limiter
      .check(this.#createRequest(subject))
      .then(
        ({ allowed, degraded }) => {
          one.allowed = allowed;
          one.degraded = degraded;
        },
        (error: unknown) => {
          one.error = error;
        },
      )
      .finally(() => {
        one.settledMs = performance.now();
        this.#pending.delete(noted);
      });
    this.#pending.add(noted);
  }
}

export function isCounted({ degraded, error }: Sent): boolean {
  return degraded === undefined && error === undefined;
}

export function isAdmitted(one: Sent): boolean {
  return one.allowed && isCounted(one);
}

/** What was sent, by subject. */
export function bySubject(sent: readonly Sent[]): ReadonlyMap<string, readonly Sent[]> {
  const groups = new Map<string, Sent[]>();
  for (const one of sent) {
    const group = groups.get(one.subject);
    if (group === undefined) groups.set(one.subject, [one]);
    else group.push(one);
  }
  return groups;
}

/** How many a second in each second since `originMs`, of those that were begun in it. */
export function perSecond(sent: readonly Sent[], originMs: number): readonly (readonly [x: number, y: number])[] {
  const counts: number[] = [];
  for (const { startedMs } of sent) {
    const second = Math.floor((startedMs - originMs) / 1000);
    counts[second] = (counts[second] ?? 0) + 1;
  }
  // The last second is not whole.
  return Array.from({ length: Math.max(counts.length - 1, 0) }, (_, second) => [second, counts[second] ?? 0]);
}
