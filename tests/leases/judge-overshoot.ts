import { MostAfter } from "./most-after.ts";

/** An admission, decided at some instant from `fromMs` to `toMs`, which are the same if it is known. */
export interface Admission {
  readonly fromMs: number;
  readonly toMs: number;
  readonly cost: number;
}

/** The configuration of a window from an instant until the next era. */
export interface Era {
  readonly sinceMs: number;
  readonly limit: number;
  /** Only for arrival kinds; the others hold their limit. */
  readonly burst: number;
  /** The most that may be granted and unspent at any moment in this era. */
  readonly allowance: number;
}

export type JudgedKind = "arrival" | "count" | "sliding";

/** Everything that happened to one window of one subject and changes what may be admitted. Times are on one axis. */
export interface Course {
  readonly kind: JudgedKind;
  readonly perMs: number;
  /** Epoch milliseconds of instant 0: windows are aligned to the epoch. */
  readonly originMs: number;
  /** In order of time. The first applies from the beginning. */
  readonly eras: readonly Era[];
  /** When its counter was lost, by a reset or with its server. */
  readonly emptiedMs?: readonly number[];
  /** When the ledger was lost with it. */
  readonly lostMs?: readonly number[];
  /** Units given back explicitly. */
  readonly credits?: readonly { readonly atMs: number; readonly cost: number }[];
}

/** The interval with the largest excess. */
export interface Overshoot {
  readonly fromMs: number;
  readonly toMs: number;
  readonly admitted: number;
  /** The most that the algorithm admits in it, exactly. */
  readonly exact: number;
  /** How much more may be spent in it than was charged in it. */
  readonly allowance: number;
  /** Admitted beyond both. Above 0 the bound is broken. */
  readonly beyond: number;
}

/** A microsecond of rate, as `docs/algorithms.md` says, and the precision of doubles of this size. */
const slackMs = 0.001;
const roundingUnits = 1e-6;

/**
 * The most that an algorithm admits between two instants, both included, whatever was asked before and meanwhile.
 *
 * Let `used` be what a counter holds, in units, and `net` what is taken in an interval less what is given back in it. A take
 * adds its cost and leaves at most the capacity, a credit takes away at most its units, and time drains. So from a to b
 *
 *     net(a, b) ≤ used(b) − used(a) + drained(a, b)         used(b) ≤ capacity, used(a) ≥ 0
 *
 * **Arrival.** Drains at limit/per, so net ≤ burst + rate × (b − a).
 *
 * **Count.** Nothing drains, and a new window begins with 0: net ≤ limit for every aligned window that the interval touches.
 *
 * **Sliding.** used = current + previous × (end − now) / per. It drains at previous/per, and previous ≤ limit. Within one
 * aligned window net ≤ current ≤ limit. If the interval crosses m ≥ 1 ends of windows, the first of them e and the last l, then
 * used(e) is what the window that ended there counted, which is at least net(a, e), whatever drained of the window before. So
 *
 *     net(a, b) = net(a, e) + net(e, b) ≤ used(e) + used(b) − used(e) + drained(e, b)
 *               ≤ limit + limit × (b − e) / per = limit × (m + (b − l) / per)
 *
 * It is reached: all of the limit at the end of one window, then as it drains.
 *
 * **Edits.** The same sums with the limit of each moment: what drains of a sliding window is the largest limit of the window
 * before. An arrival stays where it is, so that what it holds is worth `used × new limit / old limit`, and at most the new
 * burst; `forgiven` is what is less of it. A counter that is emptied forgives what it held, a capacity at most.
 *
 * Charges after the fact leave less to be taken, and change nothing here.
 */
export function exactMost(course: Course, fromMs: number, toMs: number): number {
  let most = roundingUnits;
  for (const atMs of course.emptiedMs ?? []) if (within(atMs, fromMs, toMs)) most += mostHeld(course, atMs);
  for (const { atMs, cost } of course.credits ?? []) if (within(atMs, fromMs, toMs)) most += cost;
  switch (course.kind) {
    case "arrival":
      return most + mostArrivals(course, fromMs, toMs);
    case "count":
      return most + mostCounted(course, fromMs, toMs);
    case "sliding":
      return most + mostSliding(course, fromMs, toMs);
  }
}

function mostArrivals({ perMs, eras }: Course, fromMs: number, toMs: number): number {
  let most = 0;
  eras.forEach((era, index) => {
    const next = eras[index + 1];
    const sinceMs = index === 0 ? Number.NEGATIVE_INFINITY : era.sinceMs;
    const untilMs = next?.sinceMs ?? Number.POSITIVE_INFINITY;
    const overlapMs = Math.min(toMs + slackMs, untilMs) - Math.max(fromMs, sinceMs);
    if (overlapMs > 0) most += (era.limit * overlapMs) / perMs;
    if (next !== undefined && within(next.sinceMs, fromMs, toMs)) most += forgiven(era, next) + slackOfEdit;
    if (sinceMs <= toMs && toMs < untilMs) most += era.burst;
  });
  return most;
}

/** Tolerances are rounded for each limit separately, by less than a thousandth of a unit. */
const slackOfEdit = 0.002;

/** The most by which a counter of arrivals shrinks under the new limit. */
function forgiven(old: Era, now: Era): number {
  return Math.max(old.burst - Math.min((old.burst * now.limit) / old.limit, now.burst), 0);
}

function mostCounted(course: Course, fromMs: number, toMs: number): number {
  const last = findWindow(course, toMs);
  const first = findWindow(course, fromMs);
  const [only] = course.eras;
  if (course.eras.length === 1) return only!.limit * (last - first + 1);
  let most = 0;
  for (let at = first; at <= last; at++) {
    most += largestLimit(course, Math.max(findStart(course, at), fromMs), Math.min(findStart(course, at + 1), toMs));
  }
  return most;
}

function mostSliding(course: Course, fromMs: number, toMs: number): number {
  const { perMs } = course;
  const last = findWindow(course, toMs);
  let most = largestLimit(course, fromMs, toMs);
  for (let at = findWindow(course, fromMs) + 1; at <= last; at++) {
    const startMs = findStart(course, at);
    const drainedMs = Math.min(toMs - startMs, perMs);
    most += (largestLimit(course, startMs - perMs, startMs) * drainedMs) / perMs;
  }
  return most;
}

/** The most that a counter can have held when it was lost. */
function mostHeld(course: Course, atMs: number): number {
  if (course.kind === "arrival") return Math.max(...erasWithin(course, atMs, atMs).map(({ burst }) => burst));
  return largestLimit(course, atMs - 2 * course.perMs, atMs);
}

/**
 * How much of the admissions from an instant on may have been charged earlier: everything granted and unspent at that
 * time. A ledger that was lost earlier does not know the grants until then, and an edit revokes none.
 */
export function allowanceAt({ eras, lostMs = [] }: Course, fromMs: number): number {
  const largestUntil = (ms: number): number =>
    Math.max(...eras.filter(({ sinceMs }, index) => index === 0 || sinceMs <= ms).map(({ allowance }) => allowance));
  const lost = lostMs.filter((ms) => ms <= fromMs).reduce((sum, ms) => sum + largestUntil(ms), 0);
  return largestUntil(fromMs) + lost;
}

/** Checks every interval from one admission to another, and finds the one with the largest excess. */
export function judgeOvershoot(admissions: readonly Admission[], course: Course): Overshoot {
  let worst = nothingAdmitted;
  const inOrder = admissions.toSorted((one, other) => one.toMs - other.toMs);
  for (const fromMs of new Set(admissions.map((one) => one.fromMs))) {
    const allowance = allowanceAt(course, fromMs);
    let admitted = 0;
    for (const one of inOrder) {
      if (one.fromMs < fromMs) continue;
      admitted += one.cost;
      const exact = exactMost(course, fromMs, one.toMs);
      const beyond = admitted - exact - allowance;
      if (beyond > worst.beyond) worst = { fromMs, toMs: one.toMs, admitted, exact, allowance, beyond };
    }
  }
  return worst;
}

/** `judgeOvershoot` for a great many admissions by a limit that was never edited, reset or lost. */
export function judgeSteadyOvershoot(admissions: readonly Admission[], course: Course): Overshoot {
  const [era] = course.eras;
  if (era === undefined || course.eras.length > 1 || [course.emptiedMs, course.lostMs, course.credits].some(hasAny)) {
    throw new TypeError("only a limit without events is judged quickly");
  }
  let worst = nothingAdmitted;
  const ends = admissions.map(({ toMs }) => toMs).toSorted((one, other) => one - other);
  // The admissions until each end since the current start, less the part of the bound that depends on the end.
  const since = new MostAfter(ends.map((endMs) => -endingPart(course, era, endMs)));
  for (const { fromMs, toMs, cost } of admissions.toSorted((one, other) => other.fromMs - one.fromMs)) {
    since.add(firstFrom(ends, toMs), cost);
    const inWindow = course.kind === "sliding" ? firstFrom(ends, findStart(course, findWindow(course, fromMs) + 1)) : 0;
    for (const [low, high] of [
      [firstFrom(ends, fromMs), Math.max(inWindow, firstFrom(ends, fromMs))],
      [Math.max(inWindow, firstFrom(ends, fromMs)), ends.length],
    ] as const) {
      if (low >= high) continue;
      // Within one sliding window the end plays no part: the last one has most.
      const at = low < inWindow ? high - 1 : since.findMost(low, high);
      const endMs = ends[at]!;
      const admitted = since.at(at) + endingPart(course, era, endMs);
      const exact = exactMost(course, fromMs, endMs);
      const beyond = admitted - exact - era.allowance;
      if (beyond > worst.beyond) worst = { fromMs, toMs: endMs, admitted, exact, allowance: era.allowance, beyond };
    }
  }
  return worst;
}

/** The bound of an interval is this part, by its end, less one by its beginning; beyond one window, if it slides. */
function endingPart(course: Course, { limit }: Era, endMs: number): number {
  return course.kind === "count" ? limit * findWindow(course, endMs) : (limit * endMs) / course.perMs;
}

const nothingAdmitted: Overshoot = {
  fromMs: 0,
  toMs: 0,
  admitted: 0,
  exact: 0,
  allowance: 0,
  beyond: Number.NEGATIVE_INFINITY,
};

export function renderOvershoot({ fromMs, toMs, admitted, exact, allowance, beyond }: Overshoot): string {
  const between = `${admitted} admitted from ${fromMs} to ${toMs} ms`;
  return `${between}: ${beyond.toFixed(3)} beyond ${exact.toFixed(3)} exactly and ${allowance} of allowance`;
}

function within(atMs: number, fromMs: number, toMs: number): boolean {
  return fromMs <= atMs && atMs <= toMs;
}

function hasAny(list: readonly unknown[] | undefined): boolean {
  return list !== undefined && list.length > 0;
}

function findWindow({ originMs, perMs }: Course, atMs: number): number {
  return Math.floor((originMs + atMs) / perMs);
}

function findStart({ originMs, perMs }: Course, index: number): number {
  return index * perMs - originMs;
}

function erasWithin({ eras }: Course, fromMs: number, toMs: number): readonly Era[] {
  return eras.filter(({ sinceMs }, index) => {
    const untilMs = eras[index + 1]?.sinceMs ?? Number.POSITIVE_INFINITY;
    return (index === 0 || sinceMs <= toMs) && untilMs >= fromMs;
  });
}

function largestLimit(course: Course, fromMs: number, toMs: number): number {
  if (course.eras.length === 1) return course.eras[0]!.limit;
  return Math.max(...erasWithin(course, fromMs, toMs).map(({ limit }) => limit));
}

/** The index of the first element of an ordered list that is not smaller. */
function firstFrom(ordered: readonly number[], least: number): number {
  let [low, high] = [0, ordered.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ordered[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
