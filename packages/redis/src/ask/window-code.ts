import type { CompiledWindow } from "sluice";
import { onceRetentionMs, worthMs } from "sluice/store";
import { codeOfIdentity } from "../place/key-names.ts";

/** Numbers of the kinds of windows, as scripts know them. */
export const kindNumber = { arrival: 1, wideArrival: 2, count: 3, sliding: 4, log: 5 } as const;

/** Units of arrival time in a millisecond: 2^20, or 2^10 for windows that reach too far for a circle of 99 days. */
const unitsPerMs = 2 ** 20;
const wideUnitsPerMs = 2 ** 10;
const widestMs = 2 ** 31;
/** More than any counter ever holds: the cost never fits. */
const never = 2 ** 53;

const minuteMs = 60_000;

/** A window made ready for scripts. */
export interface WindowCode {
  readonly kind: (typeof kindNumber)[keyof typeof kindNumber];
  /** Stands for the window's identity in names of keys. */
  readonly code: string;
  readonly unitsPerMs: number;
  /** What the capacity is worth in units of arrival time, or the capacity itself. */
  readonly capacity: number;
  /** Arrival: tolerance in units. */
  readonly tolerance: number;
  /**
   * Arrival: the end of a key is renewed when its arrival time passes a multiple of this. Between two such moments the
   * arrival grows by less than `renewal`, and it is never further ahead than the tolerance, which is shorter; so a life of
   * two renewals outlives it.
   */
  readonly renewal: number;
  readonly lifeMs: number;
  readonly rates: Map<number, RateArguments>;
}

/** What the script for arrivals is told of a window and a cost, as text, made once. */
export interface RateArguments {
  readonly window: CompiledWindow;
  readonly cost: number;
  readonly worth: string;
  readonly tolerance: string;
  readonly renewal: string;
  readonly life: string;
}

const known = new WeakMap<CompiledWindow, WindowCode>();

export function codeOf(window: CompiledWindow): WindowCode {
  let code = known.get(window);
  if (code === undefined) {
    code = encodeWindow(window);
    known.set(window, code);
  }
  return code;
}

function encodeWindow(window: CompiledWindow): WindowCode {
  const code = codeOfIdentity(window.identity);
  const rates = new Map<number, RateArguments>();
  if (window.kind !== "arrival") {
    return {
      kind: kindNumber[window.kind],
      code,
      unitsPerMs: 0,
      capacity: window.capacity,
      tolerance: 0,
      renewal: 0,
      lifeMs: window.perMs === Number.POSITIVE_INFINITY ? onceRetentionMs : 2 * window.perMs,
      rates,
    };
  }
  const wide = window.toleranceMs >= widestMs;
  const units = wide ? wideUnitsPerMs : unitsPerMs;
  const renewalMs = Math.ceil(window.toleranceMs) + minuteMs;
  return {
    kind: wide ? kindNumber.wideArrival : kindNumber.arrival,
    code,
    unitsPerMs: units,
    capacity: Math.ceil(worthMs(window, window.capacity) * units),
    tolerance: Math.ceil(window.toleranceMs * units),
    renewal: renewalMs * units,
    lifeMs: 2 * renewalMs + minuteMs,
    rates,
  };
}

/** What a cost is worth in units of arrival time. */
export function worthOf(window: CompiledWindow, code: WindowCode, cost: number): number {
  return Math.ceil(worthMs(window, cost) * code.unitsPerMs);
}

/** The same for a take: a cost above the capacity is worth more than there is. */
export function takeWorthOf(window: CompiledWindow, code: WindowCode, cost: number): number {
  return cost > window.capacity ? never : worthOf(window, code, cost);
}

const mostRates = 1000;

export function rateOf(window: CompiledWindow, code: WindowCode, cost: number): RateArguments {
  let rate = code.rates.get(cost);
  if (rate === undefined) {
    if (code.rates.size >= mostRates) code.rates.clear();
    rate = {
      window,
      cost,
      worth: String(takeWorthOf(window, code, cost)),
      tolerance: String(code.tolerance),
      renewal: String(code.renewal),
      life: String(code.lifeMs),
    };
    code.rates.set(cost, rate);
  }
  return rate;
}
