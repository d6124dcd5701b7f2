import { HotKeys, ManualClock } from "sluice";
import { type Hash64, hashText, maxHotKeySubjectLength, type NamedLimit } from "sluice/internal";

/** Of all places, the share that the first subjects of a day do not get, and the share of it that is free from the start. */
const busyShare = 1 / 5;
const atOnceShare = 1 / 10;
/** The sketch's clock: its second is six periods, usually a minute, so that its rates are per minute. */
const clockMsPerPeriod = 1_000 / 6;
/** What a subject must be asked for, per minute, to count as busy while places are plenty. */
const leastPerMinute = 6;
/** Words of the filter, a power of two: 64 KB, which the processor's cache holds. */
const filterWords = 2 ** 14;
/** So many characters of a subject choose its bits, from the end, where most subjects of one kind differ. */
const filteredLength = 32;
/**
 * So many decisions of a period about subjects without a place are noted, and of those after them one in eight, at random: in a
 * flood a subject gets a place if it is eight times as busy as at other times.
 */
const allNoted = 20_000;
const sampleBits = 3;

/**
 * The subjects of a day that have separate sums, at most `maxSubjects`. Four of five places go to the first subjects, so that a
 * day with few subjects shows all of them from their first decision. A caller that invents subjects can take these places in a
 * second, so the others are for the busiest subjects without one: some from the start of the day, the rest evenly over the day.
 *
 * The fewer of them are free, the busier a subject must be to get one: 6 decisions a minute while a tenth of all is free, 60
 * with a hundredth. So subjects that are only somewhat busy, which a caller can invent as well, never take the last ones.
 *
 * Which are the busiest is known by the sketch that finds hot keys. It counts only subjects without a place, so subjects that
 * have one cost nothing; and those that callers invent cost little, because a filter knows that they have none.
 */
export class TrackedSubjects {
  readonly #dimensions: readonly NamedLimit[];
  readonly #first: number;
  readonly #atOnce: number;
  readonly #busy: number;
  readonly #names: readonly Set<string>[];
  /**
   * A Bloom filter with three bits in one word for each subject that has a place. With 50 000 of them, it takes two or three in a
   * hundred others for one of them; a set of that size takes longer to look in than all the rest of counting.
   */
  readonly #filter = new Int32Array(filterWords);
  /** Decisions of this period about subjects without a place. */
  #unplaced = 0;
  #random = 1;
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

  /** Whether the places for everyone are taken: then a subject that is not in the filter gets none before the period ends. */
  get isFull(): boolean {
    return this.#taken >= this.#first;
  }

  /** Whether a subject may have a place: never false if it has one. */
  mayHave(index: number, subject: string): boolean {
    const hash = filterHash(index, subject);
    const bits = filterBits(hash);
    return (this.#filter[hash & (filterWords - 1)]! & bits) === bits;
  }

  /** Whether the subject has a place, or gets one because there are some for everyone. Long names get none. */
  admit(index: number, subject: string): boolean {
    if (this.mayHave(index, subject) && this.#names[index]!.has(subject)) return true;
    if (this.isFull || subject.length > maxHotKeySubjectLength) return false;
    this.#taken += 1;
    this.#add(index, subject);
    return true;
  }

  /** Notes a decision about a subject that has no place. */
  note(index: number, subject: string): void {
    this.#unplaced += 1;
    if (this.#unplaced > allNoted && this.#drawBits() !== 0) return;
    // The sketch would cut a longer name.
    if (subject.length > maxHotKeySubjectLength) return;
    hashText(subject, this.#hash, index);
    this.#sketch.note(this.#dimensions[index]!, subject, this.#hash.lo, this.#hash.hi);
  }

  /** Ends a period: gives the places that are free by then to the busiest subjects that have none. */
  endPeriod(shareOfDay: number): void {
    this.#clock.advance(clockMsPerPeriod);
    this.#unplaced = 0;
    let free = Math.floor(this.#atOnce + (this.#busy - this.#atOnce) * shareOfDay) - this.#takenBusy;
    for (const { scope, subject, perSecond, errorPerSecond } of this.#sketch.top({ by: "rate", count: free })) {
      const certainPerMinute = perSecond - errorPerSecond;
      if (certainPerMinute < leastPerMinute * Math.max(1, this.#atOnce / free)) return;
      free -= 1;
      const index = Number(scope);
      hashText(subject, this.#hash, index);
      this.#sketch.forget(this.#hash.lo, this.#hash.hi);
      this.#takenBusy += 1;
      this.#add(index, subject);
    }
  }

  /** Begins a day: all places are free. */
  forget(): void {
    for (const names of this.#names) names.clear();
    this.#filter.fill(0);
    this.#taken = 0;
    this.#takenBusy = 0;
  }

  #add(index: number, subject: string): void {
    this.#names[index]!.add(subject);
    const hash = filterHash(index, subject);
    this.#filter[hash & (filterWords - 1)]! |= filterBits(hash);
  }

  /** Xorshift: callers cannot arrange their requests by it to be noted, or not to be, any better than by chance. */
  #drawBits(): number {
    let random = this.#random;
    random ^= random << 13;
    random ^= random >>> 17;
    random ^= random << 5;
    this.#random = random;
    return random & (2 ** sampleBits - 1);
  }
}

/** Need not be secret: a subject with the bits of others takes longer to count, and no more. */
function filterHash(index: number, subject: string): number {
  const { length } = subject;
  let hash = length ^ (index << 16);
  for (let i = Math.max(0, length - filteredLength); i < length; i++)
    hash = Math.imul(hash ^ subject.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return hash ^ (hash >>> 13);
}

/** Three of 32, from the bits of the hash that do not choose the word. A shift takes the lowest five of its number. */
function filterBits(hash: number): number {
  return (1 << (hash >>> 14)) | (1 << (hash >>> 19)) | (1 << (hash >>> 24));
}
