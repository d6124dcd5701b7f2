import { type Clock, systemClock } from "../clock.ts";

/** A counter that is asked for often, as far as the sketch can tell. */
export interface HotKey {
  readonly policy: string;
  readonly scope: string;
  /** Cut to `maxSubjectLength`; what was cut ends in `…`. */
  readonly subject: string;
  /** Decisions: too low by at most an eighth of a decision, and too high by at most `errorPerSecond`. */
  readonly perSecond: number;
  /** Denials among them: never too high, and too low by at most `errorPerSecond` and a quarter of a denial. */
  readonly deniedPerSecond: number;
  readonly errorPerSecond: number;
}

/** What a counter's name shows of its limit. */
export interface NamedLimit {
  readonly policy: { readonly id: string };
  readonly scope: string;
}

export interface HotKeysOptions {
  readonly clock?: Clock | undefined;
  /** How many sets of four entries, a power of two from 256 to 65 536; 72 bytes each. Absent: 4 096. */
  readonly sets?: number | undefined;
}

export interface TopOptions {
  /** The rate that they are sorted and selected by. */
  readonly by: "rate" | "denials";
  /** How many at most; never more than there are names. */
  readonly count: number;
}

/** How often a counter is asked for. */
export type HotKeyRates = Pick<HotKey, "perSecond" | "deniedPerSecond" | "errorPerSecond">;

export type HotKeyTotals = Pick<HotKey, "perSecond" | "deniedPerSecond">;

const usualSets = 4096;
const ways = 4;
/** A set is 64 bytes, a line of the processor's cache: four tags (0: empty), then their counts, errors and denials. */
const setWords = 4 * ways;
const countAt = ways;
const errorAt = 2 * ways;
const deniedAt = 3 * ways;
/** Counts are in eighths of a decision, so that halving rounds off little. */
const unit = 8;
/** More than a process can decide in two seconds. Counts stop there. */
const mostCount = 2 ** 30;
const halfLifeMs = 1000;
/** After this many halvings nothing is left of any count. */
const mostHalvings = 30;
/**
 * The factor by which another must exceed a name's count to take its place, so that counters of equal rate do not
 * alternate.
 */
const nameMargin = 1.25;

/** How many counters are listed by name for their rate, and how many for their denials. */
export const maxNames = 256;
export const maxDeniedNames = 128;
export const maxSubjectLength = 256;

/**
 * The counters that are asked for and denied most, in 300 KB and 384 names, however many counters there are.
 *
 * **Counting.** Space-Saving, in 4 096 sets of 4 entries by default; a counter's seeded hash, which callers cannot
 * steer, chooses the set. A known counter increments its count. An unknown one replaces the entry with the smallest
 * count of its set, and inherits that count as its *error*: as much may belong to other counters. So, for a decayed
 * number of decisions n of a counter, and N of its set:
 *
 *     count − error ≤ n ≤ count + 1/8        while it is there
 *     n ≤ smallest count of its set + 1/8 ≤ N/4 + 1/8        while it is not
 *
 * A counter with more than a quarter of its set's decisions is therefore always there, and so, on average, is one with
 * more than 1/12 288 of all others' decisions together. If j hotter ones are there, the same holds without their
 * decisions and entries: n ≤ (N − theirs)/(4 − j). Counters whose hashes agree in 44 bits count as one.
 *
 * **Rates.** All counts are halved every second, counted from the sketch's creation. So with n₀ decisions in this
 * second, of which a share f has passed, and n₁, n₂, … in those before it, n = n₀ + n₁/2 + n₂/4 + …, and
 *
 *     per second = n / (1 + f)
 *
 * is a mean of the rates of these seconds, weighted by f, ½, ¼, …: exact for a steady rate at every f, and within 1/8
 * of a new one after three seconds. An error halves too while a counter stays, and is gone in a few seconds. Halving
 * cuts off eighths, less than one of them altogether.
 *
 * **Names** are kept for at most 256 counters. One is considered for a name whenever its own count, count − error,
 * passes a power of two, which a steady rate does once in a second; it gets a free place, or that of the least, if it
 * has a quarter more. One that gets none, because others are asked for more often, may get one of 128 by its denials,
 * in the same way.
 */
export class HotKeys {
  readonly #clock: Clock;
  readonly #setMask: number;
  readonly #table: Int32Array;
  /** The place of an entry's name, plus 1; 0 if it has none. Indexed by the word of its tag, divided by 4. */
  readonly #placeByEntry: Uint16Array;
  /** Names by place: the entry's tag word, or −1 for a free place. */
  readonly #tagAtByPlace = new Int32Array(maxNames + maxDeniedNames).fill(-1);
  readonly #names: (Name | undefined)[] = new Array(maxNames + maxDeniedNames).fill(undefined);
  readonly #byRate: Places = { from: 0, to: maxNames, named: 0, least: 0 };
  readonly #byDenials: Places = { from: maxNames, to: maxNames + maxDeniedNames, named: 0, least: 0 };
  #halvedAtMs: number;

  constructor(options: HotKeysOptions = {}) {
    const { clock = systemClock, sets = usualSets } = options;
    if (!(Number.isInteger(Math.log2(sets)) && sets >= 256 && sets <= 65_536))
      throw new RangeError(`sets must be a power of two from 256 to 65536, but is ${sets}`);
    this.#clock = clock;
    this.#setMask = sets - 1;
    this.#table = new Int32Array(sets * setWords);
    this.#placeByEntry = new Uint16Array(sets * ways);
    this.#halvedAtMs = this.#clock.nowMs();
  }

  /** The sketch's maximum size, including its names. */
  get bytes(): number {
    const nameBytes = this.#names.length * (2 * maxSubjectLength + 64);
    return this.#table.byteLength + this.#placeByEntry.byteLength + this.#tagAtByPlace.byteLength + nameBytes;
  }

  /** How many counters have a known name. */
  get named(): number {
    return this.#byRate.named + this.#byDenials.named;
  }

  /**
   * Notes a decision about a counter: one limit and subject, with the hash that it is found by in memory. Returns how
   * many a second are certainly its own: never too high, so that a rare counter never seems hot; within a few seconds
   * it is the rate. `nowMs` is the time by the sketch's clock, if the caller has just read it.
   */
  note(limit: NamedLimit, subject: string, lo: number, hi: number, nowMs: number = this.#clock.nowMs()): number {
    let sinceMs = nowMs - this.#halvedAtMs;
    if (sinceMs >= halfLifeMs || sinceMs < 0) {
      this.#halve(sinceMs);
      sinceMs = nowMs - this.#halvedAtMs;
    }
    const table = this.#table;
    const tag = hi || 1;
    let at = (lo & this.#setMask) * setWords;
    if (table[at] !== tag) {
      if (table[at + 1] === tag) at += 1;
      else if (table[at + 2] === tag) at += 2;
      else if (table[at + 3] === tag) at += 3;
      else at = this.#replaceLeast(at, tag);
    }
    const count = table[at + countAt]! + unit;
    if (count <= mostCount) table[at + countAt] = count;
    const own = count - table[at + errorAt]!;
    // The highest bit changes when a power of two is passed.
    if (Math.clz32(own) !== Math.clz32(own - unit) && own > unit) this.#considerName(limit, subject, at, own);
    return own / (unit + (unit / halfLifeMs) * sinceMs);
  }

  /** Notes that the last decision noted is a denial. */
  noteDenied(lo: number, hi: number): void {
    const at = this.#find(lo, hi);
    if (at < 0) return;
    const denied = this.#table[at + deniedAt]! + unit;
    if (denied <= mostCount) this.#table[at + deniedAt] = denied;
  }

  /** Forgets a counter, which gives its entry and its name to another. */
  forget(lo: number, hi: number): void {
    const at = this.#find(lo, hi);
    if (at >= 0) this.#empty(at);
  }

  /** A counter's rates, if it is known. */
  find(lo: number, hi: number, nowMs: number = this.#clock.nowMs()): HotKeyRates | undefined {
    const perUnit = this.#perUnit(nowMs);
    const at = this.#find(lo, hi);
    return at < 0 ? undefined : this.#ratesAt(at, perUnit);
  }

  /** The hottest counters whose names are known, hottest first: by their certain rate, or by their denials. */
  top({ by, count }: TopOptions, nowMs: number = this.#clock.nowMs()): HotKey[] {
    const perUnit = this.#perUnit(nowMs);
    const table = this.#table;
    const found: { readonly at: number; readonly name: Name; readonly weight: number }[] = [];
    for (let place = 0; place < this.#tagAtByPlace.length; place++) {
      const at = this.#tagAtByPlace[place]!;
      if (at < 0) continue;
      const weight = by === "rate" ? this.#ownAt(at) : table[at + deniedAt]!;
      if (weight > 0) found.push({ at, name: this.#names[place]!, weight });
    }
    found.sort((one, other) => other.weight - one.weight);
    return found.slice(0, Math.max(count, 0)).map(({ at, name }) => ({ ...name, ...this.#ratesAt(at, perUnit) }));
  }

  /** All counters together. Every decision counts once for each of its limits; some denials may be missing. */
  totals(nowMs: number = this.#clock.nowMs()): HotKeyTotals {
    const perUnit = this.#perUnit(nowMs);
    const table = this.#table;
    let count = 0;
    let denied = 0;
    for (let first = 0; first < table.length; first += setWords) {
      for (let at = first; at < first + ways; at++) {
        count += table[at + countAt]!;
        denied += table[at + deniedAt]!;
      }
    }
    return { perSecond: count * perUnit, deniedPerSecond: denied * perUnit };
  }

  #perUnit(nowMs: number): number {
    const sinceMs = nowMs - this.#halvedAtMs;
    if (sinceMs >= halfLifeMs || sinceMs < 0) this.#halve(sinceMs);
    return 1 / (unit + (unit / halfLifeMs) * (nowMs - this.#halvedAtMs));
  }

  #ratesAt(at: number, perUnit: number): HotKeyRates {
    const table = this.#table;
    return {
      perSecond: table[at + countAt]! * perUnit,
      deniedPerSecond: table[at + deniedAt]! * perUnit,
      errorPerSecond: table[at + errorAt]! * perUnit,
    };
  }

  /** The word of a counter's tag, or −1. */
  #find(lo: number, hi: number): number {
    const table = this.#table;
    const tag = hi || 1;
    const first = (lo & this.#setMask) * setWords;
    for (let at = first; at < first + ways; at++) if (table[at] === tag) return at;
    return -1;
  }

  #ownAt(at: number): number {
    return this.#table[at + countAt]! - this.#table[at + errorAt]!;
  }

  /** Gives the smallest entry of the set that begins at `first` to the tag, and returns its place. */
  #replaceLeast(first: number, tag: number): number {
    const table = this.#table;
    let at = first;
    for (let other = first + 1; other < first + ways; other++) {
      if (table[other + countAt]! < table[at + countAt]!) at = other;
    }
    this.#forgetName(at);
    table[at] = tag;
    table[at + errorAt] = table[at + countAt]!;
    table[at + deniedAt] = 0;
    return at;
  }

  #considerName(limit: NamedLimit, subject: string, at: number, own: number): void {
    if (this.#placeByEntry[entryNumber(at)] !== 0) return;
    let place = this.#findPlace(this.#byRate, own);
    const denied = this.#table[at + deniedAt]!;
    if (place < 0 && denied > 0) place = this.#findPlace(this.#byDenials, denied);
    if (place < 0) return;
    this.#placeByEntry[entryNumber(at)] = place + 1;
    this.#tagAtByPlace[place] = at;
    this.#names[place] = { policy: limit.policy.id, scope: limit.scope, subject: cut(subject) };
  }

  /** A place for a counter of this weight: a free one, or that of the least. −1 if there is none. */
  #findPlace(places: Places, weight: number): number {
    let place = -1;
    if (places.named < places.to - places.from) place = this.#tagAtByPlace.indexOf(-1, places.from);
    else {
      if (weight < places.least * nameMargin) return -1;
      place = this.#findLeast(places);
      if (weight < places.least * nameMargin) return -1;
      this.#forgetName(this.#tagAtByPlace[place]!);
    }
    places.named += 1;
    if (weight < places.least) places.least = weight;
    return place;
  }

  #findLeast(places: Places): number {
    let least = places.from;
    places.least = this.#weightAt(places, least);
    for (let place = places.from + 1; place < places.to; place++) {
      const weight = this.#weightAt(places, place);
      if (weight >= places.least) continue;
      least = place;
      places.least = weight;
    }
    return least;
  }

  #weightAt(places: Places, place: number): number {
    const at = this.#tagAtByPlace[place]!;
    return places === this.#byRate ? this.#ownAt(at) : this.#table[at + deniedAt]!;
  }

  #forgetName(at: number): void {
    const place = this.#placeByEntry[entryNumber(at)]! - 1;
    if (place < 0) return;
    this.#placeByEntry[entryNumber(at)] = 0;
    this.#tagAtByPlace[place] = -1;
    this.#names[place] = undefined;
    const places = place < maxNames ? this.#byRate : this.#byDenials;
    places.named -= 1;
  }

  /** Halves everything once for each second that has passed. If the clock stepped back, a second begins anew. */
  #halve(sinceMs: number): void {
    if (sinceMs < 0) {
      this.#halvedAtMs += sinceMs;
      return;
    }
    const seconds = Math.floor(sinceMs / halfLifeMs);
    this.#halvedAtMs += seconds * halfLifeMs;
    const times = Math.min(seconds, mostHalvings);
    const table = this.#table;
    for (let first = 0; first < table.length; first += setWords) {
      for (let at = first; at < first + ways; at++) {
        if (table[at] === 0) continue;
        const count = table[at + countAt]! >> times;
        if (count === 0) this.#empty(at);
        else {
          table[at + countAt] = count;
          // Rounded up, since this is how much too high the count may be.
          table[at + errorAt] = Math.min((table[at + errorAt]! + (1 << times) - 1) >> times, count);
          table[at + deniedAt]! >>= times;
        }
      }
    }
    // A count is cut off and its error rounded up: their difference may be one less than half of what it was.
    for (const places of [this.#byRate, this.#byDenials]) places.least = (places.least >> times) - 1;
  }

  #empty(at: number): void {
    this.#forgetName(at);
    const table = this.#table;
    table[at] = 0;
    table[at + countAt] = 0;
    table[at + errorAt] = 0;
    table[at + deniedAt] = 0;
  }
}

/** A range of places, for the names of those with the most of one thing. */
interface Places {
  readonly from: number;
  readonly to: number;
  named: number;
  /** A lower bound on the weights here: it grows with them, and is recomputed only when it seems to be beaten. */
  least: number;
}

interface Name {
  readonly policy: string;
  readonly scope: string;
  readonly subject: string;
}

/** Numbers the entries without gaps, from the words that their tags are in. */
function entryNumber(at: number): number {
  return (at >> 4) * ways + (at & (ways - 1));
}

/**
 * A copy of at most `maxSubjectLength` units, and the mark that it was cut. It is made unit by unit, because a slice
 * would keep the original text alive.
 */
function cut(subject: string): string {
  const whole = subject.length <= maxSubjectLength;
  let length = whole ? subject.length : maxSubjectLength - 1;
  if (!whole && isFirstOfPair(subject.charCodeAt(length - 1))) length -= 1;
  const units: number[] = [];
  for (let i = 0; i < length; i++) units.push(subject.charCodeAt(i));
  if (!whole) units.push(cutMark);
  return String.fromCharCode(...units);
}

const cutMark = 0x2026;

/** Whether a character of two units begins here. */
function isFirstOfPair(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}
