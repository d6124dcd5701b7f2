import { HotKeys, ManualClock } from "sluice";
import { type Hash64, hashText, maxHotKeySubjectLength, type NamedLimit } from "sluice/internal";

/** Of all places, the share that the first subjects of a day do not get, and the share of it that is free from the start. */
const busyShare = 1 / 5;
const atOnceShare = 1 / 10;
/** The sketch's clock: its second is six periods, usually a minute, so that its rates are per minute. */
const clockMsPerPeriod = 1_000 / 6;
/** What a subject must be asked for, per minute, to count as busy while places are plenty. */
const leastPerMinute = 6;
/** Bits of the filter, a power of two: 32 KB, which the processor's cache holds. One in six is set by 50 000 subjects. */
const filterBits = 2 ** 18;

/**
 * The subjects of a day that have separate sums, at most `maxSubjects`. Four of five places go to the first subjects, so that a
 * day with few subjects shows all of them from their first decision. A caller that invents subjects can take these places in a
 * second, so the others are for the busiest subjects without one: some from the start of the day, the rest evenly over the day.
 *
 * The fewer of them are free, the busier a subject must be to get one: 6 decisions a minute while a tenth of all is free, 60
 * with a hundredth. So subjects that are only somewhat busy, which a caller can invent as well, never take the last ones.
 *
 * Which are the busiest is known by the sketch that finds hot keys. It counts only subjects without a place, so subjects that
 * have one cost nothing.
 */
export class TrackedSubjects {
  readonly #dimensions: readonly NamedLimit[];
  readonly #first: number;
  readonly #atOnce: number;
  readonly #busy: number;
  readonly #names: readonly Set<string>[];
  /** The bit of a subject's hash is set if it has a place, so that most subjects without one need not be looked for. */
  readonly #filter = new Int32Array(filterBits / 32);
  /** Places taken by the first subjects, and by busy ones. */
  #taken = 0;
  #takenBusy = 0;
  readonly #clock = new ManualClock();
  readonly #sketch = new HotKeys({ clock: this.#clock });
  readonly #hash: Hash64 = { lo: 0, hi: 0 };

  constructor(dimensions: number, maxSubjects: number) {
    this.#busy = Math.floor(maxSubjects * busyShare);
    this.#first = maxSubjects - this.#busy;
    this.#atOnce = Math.ceil(this.#busy * atOnceShare);
    this.#names = Array.from({ length: dimensions }, () => new Set<string>());
    // The sketch names a counter by its policy and scope: here, by the number of the dimension.
    this.#dimensions = this.#names.map((_, index) => ({ scope: String(index), policy: { id: "" } }));
  }

  /** Whether the subject has a place, or gets one because there are some for everyone. Notes that it was asked for if not. */
  admit(index: number, subject: string): boolean {
    hashText(subject, this.#hash, index);
    const { lo, hi } = this.#hash;
    if (this.#mayHave(lo) && this.#names[index]!.has(subject)) return true;
    if (this.#taken < this.#first) {
      this.#taken += 1;
      this.#add(index, subject, lo);
      return true;
    }
    // The sketch would cut a longer name.
    if (subject.length <= maxHotKeySubjectLength) this.#sketch.note(this.#dimensions[index]!, subject, lo, hi);
    return false;
  }

  /** Ends a period: gives the places that are free by then to the busiest subjects that have none. */
  endPeriod(shareOfDay: number): void {
    this.#clock.advance(clockMsPerPeriod);
    let free = Math.floor(this.#atOnce + (this.#busy - this.#atOnce) * shareOfDay) - this.#takenBusy;
    for (const { scope, subject, perSecond, errorPerSecond } of this.#sketch.top({ by: "rate", count: free })) {
      const certainPerMinute = perSecond - errorPerSecond;
      if (certainPerMinute < leastPerMinute * Math.max(1, this.#atOnce / free)) return;
      free -= 1;
      const index = Number(scope);
      hashText(subject, this.#hash, index);
      this.#sketch.forget(this.#hash.lo, this.#hash.hi);
      this.#takenBusy += 1;
      this.#add(index, subject, this.#hash.lo);
    }
  }

  /** Begins a day: all places are free. */
  forget(): void {
    for (const names of this.#names) names.clear();
    this.#filter.fill(0);
    this.#taken = 0;
    this.#takenBusy = 0;
  }

  #add(index: number, subject: string, lo: number): void {
    this.#names[index]!.add(subject);
    const bit = lo & (filterBits - 1);
    this.#filter[bit >> 5]! |= 1 << (bit & 31);
  }

  #mayHave(lo: number): boolean {
    const bit = lo & (filterBits - 1);
    return (this.#filter[bit >> 5]! & (1 << (bit & 31))) !== 0;
  }
}
