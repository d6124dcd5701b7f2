import { floorToGrid } from "../algorithms/time-grid.ts";
import type { Clock } from "../clock.ts";

const anomalyMs = 60_000;
const anchorEveryMs = 1000;
const anchorToleranceMs = 50;

/**
 * The time that decisions go by: a clock on the time grid that never runs back, and the epoch time of its origin, to
 * which windows are aligned.
 */
export class SteadyClock {
  readonly #source: Clock;
  /**
   * The source, shifted by as much as it has stepped back. It is the source itself until that happens, which saves
   * every check an addition.
   */
  #clock: Clock;
  #steppedBackMs = 0;
  #lastMs: number;
  #originMs: number;
  #anchorAtMs: number;
  /** When `now` looks up from reading the time: at the next anchor or the alarm, so that an alarm costs no comparison. */
  #lookUpAtMs: number;
  #alarmAtMs = Number.POSITIVE_INFINITY;
  #ring: ((nowMs: number) => void) | undefined;
  #anomalies = 0;

  constructor(clock: Clock) {
    this.#source = clock;
    this.#clock = clock;
    this.#lastMs = floorToGrid(clock.nowMs());
    this.#anchorAtMs = this.#lastMs + anchorEveryMs;
    this.#lookUpAtMs = this.#anchorAtMs;
    this.#originMs = Math.round(clock.epochMs() - this.#lastMs);
  }

  /** Epoch milliseconds of instant 0, whole. Checked once a second, and moved with the wall clock. */
  get originMs(): number {
    return this.#originMs;
  }

  /** The latest instant that was read. */
  get latestMs(): number {
    return this.#lastMs;
  }

  /** How often the clock stepped back, or the wall clock either way, by more than a minute. */
  get anomalies(): number {
    return this.#anomalies;
  }

  now(): number {
    const nowMs = floorToGrid(this.#clock.nowMs());
    if (nowMs < this.#lastMs) return this.#standStill(nowMs);
    this.#lastMs = nowMs;
    if (nowMs >= this.#lookUpAtMs) this.#lookUp(nowMs);
    return nowMs;
  }

  /** The first `now` at or after this instant calls `ring`, once, before it returns. One alarm at a time. */
  setAlarm(atMs: number, ring: (nowMs: number) => void): void {
    this.#alarmAtMs = atMs;
    this.#ring = ring;
    this.#lookUpAtMs = Math.min(this.#anchorAtMs, atMs);
  }

  #lookUp(nowMs: number): void {
    if (nowMs >= this.#anchorAtMs) this.#anchor(nowMs);
    const rings = nowMs >= this.#alarmAtMs;
    if (rings) this.#alarmAtMs = Number.POSITIVE_INFINITY;
    this.#lookUpAtMs = Math.min(this.#anchorAtMs, this.#alarmAtMs);
    if (rings) this.#ring?.(nowMs);
  }

  /** The clock stepped back: time continues from where it was. */
  #standStill(nowMs: number): number {
    const backMs = this.#lastMs - nowMs;
    if (backMs > anomalyMs) this.#anomalies += 1;
    this.#steppedBackMs += backMs;
    this.#clock = readAhead(this.#source, this.#steppedBackMs);
    this.#originMs = Math.round(this.#clock.epochMs() - this.#lastMs);
    return this.#lastMs;
  }

  #anchor(nowMs: number): void {
    this.#anchorAtMs = nowMs + anchorEveryMs;
    const originMs = Math.round(this.#clock.epochMs() - nowMs);
    const movedMs = Math.abs(originMs - this.#originMs);
    if (movedMs > anomalyMs) this.#anomalies += 1;
    if (movedMs > anchorToleranceMs) this.#originMs = originMs;
  }
}

function readAhead(clock: Clock, aheadMs: number): Clock {
  return { nowMs: () => clock.nowMs() + aheadMs, epochMs: () => clock.epochMs() };
}
