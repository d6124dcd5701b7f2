import type { CompiledWindow } from "sluice/store";
import { creditWorthMs, onceRetentionMs, worthMs } from "sluice/store";
import { identityCode } from "../place/key-names.ts";

/** Numbers of the kinds of windows, as in the scripts. */
export const kindNumber = { arrival: 1, wideArrival: 2, count: 3, sliding: 4, log: 5, record: 6, distinct: 7 } as const;

/** Units of arrival time in a millisecond. */
export const unitsPerMs: number = 2 ** 20;
/**
 * Windows that reach further are stored in another form. A key lives for 2 × furthest + 2 min, which up to here is less
 * than 2^31 ms, a quarter of the circle: so it expires before a past arrival could be mistaken for one ahead.
 */
const widestMs = 12 * 24 * 60 * 60 * 1000;
/** More than any counter ever holds: the cost never fits. For the script of arrivals it must be a whole number. */
const never = 1e300;
const neverText = String(2 ** 53);

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** A window made ready for scripts. */
export interface WindowCode {
  readonly kind: (typeof kindNumber)[Exclude<keyof typeof kindNumber, "record">];
  /** Stands for the window's identity in key names. */
  readonly code: string;
  /** What the capacity is worth in units of arrival time, or the capacity itself. */
  readonly capacity: number;
  /** Arrival: tolerance in units. */
  readonly tolerance: number;
  /** Arrival: how far ahead any limit of the counter allows, in units. */
  readonly furthest: number;
  /** Arrival: as far ahead as it can be, debt included, plus more than the minute after which its expiry is renewed. */
  readonly lifeMs: number;
  readonly rates: Map<number, RateArguments>;
}

/** The arrivals script's arguments for a window and a cost, as text, made once. */
export interface RateArguments {
  readonly window: CompiledWindow;
  readonly cost: number;
  readonly worth: string;
  readonly full: string;
  readonly tolerance: string;
  readonly furthest: string;
  readonly life: string;
}

const known = new WeakMap<CompiledWindow, WindowCode>();

/** The last window encountered, almost always the same one: looking one up costs more than everything done with it. */
let lastWindow: CompiledWindow | undefined;
let lastCode: WindowCode | undefined;

export function findCode(window: CompiledWindow): WindowCode {
  if (window === lastWindow && lastCode !== undefined) return lastCode;
  let code = known.get(window);
  if (code === undefined) {
    code = encodeWindow(window);
    known.set(window, code);
  }
  lastWindow = window;
  lastCode = code;
  return code;
}

function encodeWindow(window: CompiledWindow): WindowCode {
  const code = identityCode(window.identity);
  const rates = new Map<number, RateArguments>();
  if (window.kind !== "arrival") {
    return {
      kind: kindNumber[window.kind],
      code,
      capacity: window.capacity,
      tolerance: 0,
      furthest: 0,
      lifeMs: window.perMs === Number.POSITIVE_INFINITY ? onceRetentionMs : 2 * window.perMs,
      rates,
    };
  }
  return {
    kind: window.furthestMs > widestMs ? kindNumber.wideArrival : kindNumber.arrival,
    code,
    capacity: Math.ceil(window.fullMs * unitsPerMs),
    tolerance: Math.ceil(window.toleranceMs * unitsPerMs),
    furthest: Math.ceil(window.furthestMs * unitsPerMs),
    lifeMs: 2 * Math.ceil(window.furthestMs) + 2 * minuteMs,
    rates,
  };
}

/**
 * What `a`, `b`, `c` and life mean for each kind: see windows.lua. `arrivals` is `a` for windows of arrival times.
 * `serverNowMs` is the server's time as far as we know it.
 */
export function findShape(
  window: CompiledWindow,
  code: WindowCode,
  arrivals: number,
  serverNowMs: number,
): readonly [a: number, b: number, c: number, life: number] {
  if (code.kind <= kindNumber.wideArrival) return [arrivals, code.tolerance, code.furthest, code.lifeMs];
  if (window.calendar !== undefined) {
    // The server's time is known roughly. These bounds cover this window and the next, so err on the early side.
    const { startMs, endMs } = window.calendar(Math.floor(serverNowMs) - minuteMs);
    // Half a day into the next window is inside it, wherever clocks change.
    const next = window.calendar(endMs + dayMs / 2);
    return [-1, endMs, next.endMs, startMs];
  }
  return [window.perMs === Number.POSITIVE_INFINITY ? 0 : window.perMs, 0, 0, code.lifeMs];
}

/** What a cost is worth in units of arrival time. */
export function worthUnits(window: CompiledWindow, cost: number): number {
  return Math.ceil(worthMs(window, cost) * unitsPerMs);
}

/** What a credit is worth. */
export function creditUnits(window: CompiledWindow, cost: number): number {
  return Math.floor(creditWorthMs(window, cost) * unitsPerMs);
}

/** The same for a take: a cost above the capacity is worth more than there ever is. */
export function takeWorthUnits(window: CompiledWindow, cost: number): number {
  return cost > window.capacity ? never : worthUnits(window, cost);
}

const mostRates = 1000;

export function findRate(window: CompiledWindow, code: WindowCode, cost: number): RateArguments {
  let rate = code.rates.get(cost);
  if (rate === undefined) {
    if (code.rates.size >= mostRates) code.rates.clear();
    rate =
      code.kind > kindNumber.wideArrival
        ? encodeCount(window, code, cost)
        : {
            window,
            cost,
            worth: cost > window.capacity ? neverText : String(worthUnits(window, cost)),
            full: String(code.capacity),
            tolerance: String(code.tolerance),
            furthest: String(code.furthest),
            life: String(code.lifeMs),
          };
    code.rates.set(cost, rate);
  }
  return rate;
}

/** The same for `take-counts`: cost, capacity and length of a fixed or sliding window. */
function encodeCount(window: CompiledWindow, { lifeMs }: WindowCode, cost: number): RateArguments {
  const perMs = window.perMs === Number.POSITIVE_INFINITY ? 0 : window.perMs;
  return {
    window,
    cost,
    worth: String(cost),
    full: String(window.capacity),
    tolerance: String(perMs),
    furthest: "0",
    life: String(lifeMs),
  };
}
