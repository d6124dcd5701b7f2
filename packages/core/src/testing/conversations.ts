// Long because it is one table: every step of every golden conversation, with its because.
import type { Algorithm, Window } from "../policy/policy.ts";
import { testWindow } from "./test-limit.ts";

/**
 * Golden conversations: what every engine has to answer, step by step, and why. They begin at 22:00:00.000 UTC, the
 * start of a second, a minute and an hour, and `at` counts milliseconds from there.
 */
export interface Conversation {
  readonly name: string;
  readonly algorithm: Algorithm;
  readonly windows: readonly Window[];
  /** Whether its subject can be blocked by hand. */
  readonly blockable?: boolean;
  readonly steps: readonly Step[];
}

/** An unconditional action on the counter: a charge, a credit, or a block of its subject. */
export type StoreAction =
  | { readonly does: "charge"; readonly cost: number }
  | { readonly does: "credit"; readonly cost: number }
  | { readonly does: "block"; readonly forMs: number };

export interface Step {
  readonly at: number;
  /** Done at that moment, before anything is asked. */
  readonly first?: StoreAction;
  readonly cost: number;
  /** `never` is a denial for good, `blocked` one whatever room there is. */
  readonly answer: "allowed" | "denied" | "blocked" | "never";
  /** The largest cost that would pass: after an allowed step, or as it stands after a denial. */
  readonly remaining: number;
  /** Which window speaks, by its place in `windows`. Absent: not checked. */
  readonly speaks?: number;
  readonly retryAfterMs?: number;
  readonly resetAfterMs?: number;
  /** Leaky bucket: place in the queue, and how long until its turn. */
  readonly queue?: readonly [position: number, delayMs: number];
  readonly because: string;
}

/** Epoch milliseconds at which conversations begin: 2023-11-14T22:00:00Z. */
export const conversationStartMs = 1_699_999_200_000;

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

const bucketSteps: readonly Step[] = [
  {
    at: 0,
    cost: 1,
    answer: "allowed",
    remaining: 4,
    resetAfterMs: 500,
    because: "a fresh counter holds its whole burst",
  },
  { at: 0, cost: 3, answer: "allowed", remaining: 1, resetAfterMs: 2000, because: "cost counts, not requests" },
  {
    at: 0,
    cost: 2,
    answer: "denied",
    remaining: 1,
    retryAfterMs: 500,
    because: "one is left, the second is worth 500 ms",
  },
  { at: 0, cost: 6, answer: "never", remaining: 1, because: "more than the burst never fits, and has no retry-after" },
  { at: 499, cost: 2, answer: "denied", remaining: 1, retryAfterMs: 1, because: "refused one millisecond before" },
  {
    at: 500,
    cost: 2,
    answer: "allowed",
    remaining: 0,
    resetAfterMs: 2500,
    because: "allowed at exactly the retry-after",
  },
  { at: 750, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 250, because: "half a unit is not one" },
  { at: 1000, cost: 1, answer: "allowed", remaining: 0, because: "2/s gives one back every 500 ms" },
  { at: 60_000, cost: 5, answer: "allowed", remaining: 0, because: "idling refills the burst, and no more than that" },
  {
    at: 60_000,
    cost: 1,
    answer: "denied",
    remaining: 0,
    retryAfterMs: 500,
    because: "a minute of rest is worth one burst",
  },
];

export const conversations: readonly Conversation[] = [
  { name: "GCRA, 2/s burst 5", algorithm: "gcra", windows: [testWindow(2, second, 5)], steps: bucketSteps },
  {
    name: "token bucket, 2/s burst 5: the same mathematics",
    algorithm: "token_bucket",
    windows: [testWindow(2, second, 5)],
    steps: bucketSteps,
  },
  {
    name: "GCRA at a rate that does not divide a second, 3/s",
    algorithm: "gcra",
    windows: [testWindow(3, second)],
    steps: [
      { at: 0, cost: 1, answer: "allowed", remaining: 2, because: "one of three" },
      { at: 0, cost: 2, answer: "allowed", remaining: 0, because: "all three" },
      { at: 0, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 334, because: "333.3 ms, rounded up" },
      { at: 333, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 1, because: "a third of a millisecond early" },
      { at: 334, cost: 1, answer: "allowed", remaining: 0, because: "the first whole millisecond that is late enough" },
      { at: 1333, cost: 3, answer: "denied", remaining: 2, retryAfterMs: 1, because: "1 333.3 ms buys the fourth" },
      { at: 1334, cost: 3, answer: "allowed", remaining: 0, because: "rounding costs no request" },
    ],
  },
  {
    name: "GCRA, three requests in a second and three more in the next, 3/s",
    algorithm: "gcra",
    windows: [testWindow(3, second)],
    steps: [
      { at: 0, cost: 1, answer: "allowed", remaining: 2, because: "the first" },
      { at: 0, cost: 1, answer: "allowed", remaining: 1, because: "the second" },
      { at: 0, cost: 1, answer: "allowed", remaining: 0, because: "the third" },
      { at: 1000, cost: 1, answer: "allowed", remaining: 2, because: "a second buys three, not 2.999999" },
      { at: 1000, cost: 1, answer: "allowed", remaining: 1, because: "two left" },
      { at: 1000, cost: 1, answer: "allowed", remaining: 0, because: "and the last" },
      { at: 1000, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 334, because: "not a fourth" },
    ],
  },
  {
    name: "token bucket at a fractional rate, 16.67/s burst 1000",
    algorithm: "token_bucket",
    windows: [testWindow(16.67, second, 1000)],
    steps: [
      { at: 0, cost: 1000, answer: "allowed", remaining: 0, because: "the burst" },
      { at: 0, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 60, because: "1 s / 16.67 = 59.99 ms" },
      { at: 60, cost: 1, answer: "allowed", remaining: 0, because: "fractions of a unit add up" },
      { at: 1000, cost: 15, answer: "allowed", remaining: 0, because: "16.67 came, 16 whole ones were taken" },
    ],
  },
  {
    name: "GCRA below one a second, 1/2s",
    algorithm: "gcra",
    windows: [testWindow(1, 2 * second)],
    steps: [
      { at: 0, cost: 1, answer: "allowed", remaining: 0, because: "the only one" },
      { at: 1999, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 1, because: "not floored to a second" },
      { at: 2000, cost: 1, answer: "allowed", remaining: 0, because: "the second one" },
    ],
  },
  {
    name: "GCRA, windows of half a second and of 1.9 s are not floored",
    algorithm: "gcra",
    windows: [testWindow(1, 500), testWindow(2, 1900)],
    steps: [
      { at: 0, cost: 1, answer: "allowed", remaining: 0, because: "the half-second window has the smaller share left" },
      { at: 499, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 1, because: "0.5 s is 500 ms" },
      { at: 500, cost: 1, answer: "allowed", remaining: 0, because: "both agree" },
      { at: 949, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 51, because: "the longer wait is the first's" },
      { at: 1000, cost: 1, answer: "allowed", remaining: 0, because: "950 ms apart on average" },
    ],
  },
  {
    name: "leaky bucket, 2/s burst 4, returns the place in its queue",
    algorithm: "leaky_bucket",
    windows: [testWindow(2, second, 4)],
    steps: [
      { at: 0, cost: 1, answer: "allowed", remaining: 3, queue: [1, 0], because: "an empty bucket serves at once" },
      { at: 0, cost: 1, answer: "allowed", remaining: 2, queue: [2, 500], because: "one is before it" },
      { at: 0, cost: 2, answer: "allowed", remaining: 0, queue: [4, 1000], because: "two are before it" },
      { at: 0, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 500, because: "it does not overfill" },
      {
        at: 250,
        cost: 1,
        answer: "denied",
        remaining: 0,
        retryAfterMs: 250,
        because: "denials do not keep it from draining",
      },
      { at: 500, cost: 1, answer: "allowed", remaining: 0, queue: [4, 1500], because: "one leaked out" },
      {
        at: 2500,
        cost: 4,
        answer: "allowed",
        remaining: 0,
        queue: [4, 0],
        because: "four leaked out, none is before it",
      },
      {
        at: 2500,
        cost: 3,
        answer: "denied",
        remaining: 0,
        retryAfterMs: 1500,
        because: "three need three slots, not one",
      },
      { at: 2500, cost: 5, answer: "never", remaining: 0, because: "more than the bucket" },
    ],
  },
  {
    name: "fixed window, 10/m",
    algorithm: "fixed_window",
    windows: [testWindow(10, minute)],
    steps: [
      { at: 0, cost: 4, answer: "allowed", remaining: 6, resetAfterMs: minute, because: "four of ten" },
      { at: 10, cost: 7, answer: "denied", remaining: 6, retryAfterMs: 59_990, because: "not until the window ends" },
      { at: 20, cost: 6, answer: "allowed", remaining: 0, because: "the denial was not charged" },
      { at: 30, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 59_970, because: "used up" },
      { at: 40, cost: 11, answer: "never", remaining: 0, because: "more than a whole window" },
      {
        at: 59_999,
        cost: 1,
        answer: "denied",
        remaining: 0,
        retryAfterMs: 1,
        because: "the window's last millisecond",
      },
      { at: 60_000, cost: 10, answer: "allowed", remaining: 0, because: "a new window, all at once: the double burst" },
    ],
  },
  {
    name: "fixed window of 1.5 s, aligned to the epoch",
    algorithm: "fixed_window",
    windows: [testWindow(1, 1500)],
    steps: [
      { at: 0, cost: 1, answer: "allowed", remaining: 0, because: "22:00:00 is a multiple of 1.5 s" },
      { at: 1499, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 1, because: "the same window" },
      { at: 1500, cost: 1, answer: "allowed", remaining: 0, because: "the next" },
    ],
  },
  {
    name: "fixed window of a calendar day in Berlin",
    algorithm: "fixed_window",
    windows: [{ limit: 2, per: { kind: "calendar", unit: "day", timeZone: "Europe/Berlin" }, burst: 2 }],
    steps: [
      {
        at: 0,
        cost: 2,
        answer: "allowed",
        remaining: 0,
        resetAfterMs: hour,
        because: "23:00 there, an hour to midnight",
      },
      { at: hour - 1, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 1, because: "still the 14th" },
      { at: hour, cost: 1, answer: "allowed", remaining: 1, because: "the 15th" },
      {
        at: 25 * hour - 1,
        cost: 2,
        answer: "denied",
        remaining: 1,
        retryAfterMs: 1,
        because: "a day later, less 1 ms",
      },
    ],
  },
  {
    name: "one-off quota of 3 never refills",
    algorithm: "gcra",
    windows: [{ limit: 3, per: { kind: "never" }, burst: 3 }],
    steps: [
      { at: 0, cost: 2, answer: "allowed", remaining: 1, because: "two of three" },
      { at: 0, cost: 2, answer: "never", remaining: 1, because: "the third is left, two never are again" },
      { at: 24 * hour, cost: 1, answer: "allowed", remaining: 0, because: "the third" },
      { at: 29 * 24 * hour, cost: 1, answer: "never", remaining: 0, because: "it does not come back by expiring" },
    ],
  },
  {
    name: "sliding window, 10/10s",
    algorithm: "sliding_window",
    windows: [testWindow(10, 10 * second)],
    steps: [
      { at: 5000, cost: 10, answer: "allowed", remaining: 0, because: "all ten in the middle of a window" },
      {
        at: 9999,
        cost: 1,
        answer: "denied",
        remaining: 0,
        retryAfterMs: 1001,
        because: "across the boundary: 10 % have to fade",
      },
      { at: 10_999, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 1, because: "10 × 0.9001 + 1 > 10" },
      { at: 11_000, cost: 1, answer: "allowed", remaining: 0, because: "10 × 0.9 + 1 = 10" },
      { at: 11_000, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 1000, because: "another tenth has to fade" },
      { at: 15_000, cost: 4, answer: "allowed", remaining: 0, because: "10 × 0.5 + 1 + 4 = 10" },
      {
        at: 15_000,
        cost: 5,
        answer: "denied",
        remaining: 0,
        retryAfterMs: 5000,
        because: "5 + 5 fit when the old ten are gone",
      },
      {
        at: 15_000,
        cost: 6,
        answer: "denied",
        remaining: 0,
        retryAfterMs: 7000,
        because: "5 × 0.8 + 6 = 10 in the window after",
      },
      { at: 15_000, cost: 11, answer: "never", remaining: 0, because: "more than the window" },
      { at: 40_000, cost: 10, answer: "allowed", remaining: 0, because: "two windows later nothing is left" },
    ],
  },
  {
    name: "sliding log, 5/10s",
    algorithm: "sliding_log",
    windows: [testWindow(5, 10 * second)],
    steps: [
      { at: 0, cost: 2, answer: "allowed", remaining: 3, because: "two" },
      { at: 4000, cost: 2, answer: "allowed", remaining: 1, because: "two more" },
      { at: 6000, cost: 2, answer: "denied", remaining: 1, retryAfterMs: 4000, because: "the first two go at 10 s" },
      {
        at: 6000,
        cost: 4,
        answer: "denied",
        remaining: 1,
        retryAfterMs: 8000,
        because: "four need the second two gone as well",
      },
      { at: 9999, cost: 2, answer: "denied", remaining: 1, retryAfterMs: 1, because: "still there" },
      { at: 10_000, cost: 2, answer: "allowed", remaining: 1, resetAfterMs: 10_000, because: "gone" },
      { at: 10_000, cost: 6, answer: "never", remaining: 1, because: "more than the window" },
      { at: 14_000, cost: 3, answer: "allowed", remaining: 0, because: "the second two are gone" },
      { at: 30_000, cost: 5, answer: "allowed", remaining: 0, because: "an empty log" },
    ],
  },
  {
    name: "several windows, 4/s and 1000/h: of those that fit, the one with the smaller share left decides, not the smaller number",
    algorithm: "gcra",
    windows: [testWindow(4, second), testWindow(1000, hour)],
    steps: [
      { at: 0, cost: 1, answer: "allowed", remaining: 3, speaks: 0, because: "3 of 4 is less than 999 of 1000" },
      {
        at: 1000,
        cost: 1,
        answer: "allowed",
        remaining: 3,
        speaks: 0,
        because: "and so for as long as the second is the tighter one",
      },
    ],
  },
  {
    name: "several windows, 50/10ms and 120/h, once much of the hour is used",
    algorithm: "fixed_window",
    windows: [testWindow(50, 10), testWindow(120, hour)],
    steps: [
      { at: 0, cost: 50, answer: "allowed", remaining: 0, because: "nothing is left of the short one" },
      {
        at: 10,
        cost: 10,
        answer: "allowed",
        remaining: 40,
        speaks: 1,
        because: "60 of 120 is a smaller share than 40 of 50, and 40 is the most that passes both",
      },
      {
        at: 10,
        cost: 30,
        answer: "allowed",
        remaining: 10,
        speaks: 0,
        because: "10 of 50 is a smaller share than 30 of 120",
      },
    ],
  },
  {
    name: "several windows, 10/s and 15/m: all must agree, the longest wait decides",
    algorithm: "fixed_window",
    windows: [testWindow(10, second), testWindow(15, minute)],
    steps: [
      { at: 0, cost: 10, answer: "allowed", remaining: 0, because: "the second is used up, 5 are left in the minute" },
      {
        at: 0,
        cost: 6,
        answer: "denied",
        remaining: 0,
        speaks: 1,
        retryAfterMs: minute,
        because: "the minute's wait is longer, and the second has nothing left",
      },
      {
        at: 0,
        cost: 1,
        answer: "denied",
        remaining: 0,
        speaks: 0,
        retryAfterMs: second,
        because: "only the second refuses",
      },
      { at: 1000, cost: 5, answer: "allowed", remaining: 0, because: "a denial charged neither window" },
      { at: 2000, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 58_000, because: "the minute is used up" },
      {
        at: 2000,
        cost: 11,
        answer: "never",
        remaining: 0,
        speaks: 0,
        because: "never in the second's window, whatever the minute's",
      },
    ],
  },
  {
    name: "GCRA, 2/s burst 5, is given back without a receipt",
    algorithm: "gcra",
    windows: [testWindow(2, second, 5)],
    steps: [
      { at: 0, cost: 5, answer: "allowed", remaining: 0, resetAfterMs: 2500, because: "the burst" },
      {
        at: 0,
        first: { does: "credit", cost: 2 },
        cost: 1,
        answer: "allowed",
        remaining: 1,
        resetAfterMs: 2000,
        because: "two were given back, one of them is taken",
      },
      {
        at: 1000,
        first: { does: "credit", cost: 100 },
        cost: 5,
        answer: "allowed",
        remaining: 0,
        because: "however much is given back, it holds its burst and no more",
      },
      {
        at: 1000,
        first: { does: "charge", cost: 3 },
        cost: 1,
        answer: "denied",
        remaining: 0,
        retryAfterMs: 2000,
        because: "three of debt, and the one",
      },
      {
        at: 1000,
        first: { does: "credit", cost: 4 },
        cost: 2,
        answer: "denied",
        remaining: 1,
        retryAfterMs: 500,
        because: "debt shrinks first: of four, one is left over",
      },
    ],
  },
  {
    name: "leaky bucket, 2/s burst 4, is emptied by giving back",
    algorithm: "leaky_bucket",
    windows: [testWindow(2, second, 4)],
    steps: [
      { at: 0, cost: 4, answer: "allowed", remaining: 0, queue: [4, 0], because: "full" },
      {
        at: 250,
        first: { does: "credit", cost: 2 },
        cost: 1,
        answer: "allowed",
        remaining: 1,
        queue: [3, 750],
        because: "half of one has leaked out, two were taken out",
      },
    ],
  },
  {
    name: "fixed window, 10/m, is given back without a receipt",
    algorithm: "fixed_window",
    windows: [testWindow(10, minute)],
    steps: [
      { at: 0, cost: 10, answer: "allowed", remaining: 0, because: "all of it" },
      {
        at: 1000,
        first: { does: "credit", cost: 3 },
        cost: 2,
        answer: "allowed",
        remaining: 1,
        resetAfterMs: 59_000,
        because: "three were given back, and the window ends when it would have",
      },
      {
        at: 2000,
        first: { does: "credit", cost: 50 },
        cost: 11,
        answer: "never",
        remaining: 10,
        resetAfterMs: 0,
        because: "empty, and not more than that",
      },
    ],
  },
  {
    name: "one-off quota of 3 is given back without a receipt",
    algorithm: "gcra",
    windows: [{ limit: 3, per: { kind: "never" }, burst: 3 }],
    steps: [
      { at: 0, cost: 3, answer: "allowed", remaining: 0, because: "all of it" },
      {
        at: 24 * hour,
        first: { does: "credit", cost: 2 },
        cost: 2,
        answer: "allowed",
        remaining: 0,
        because: "two of them came back",
      },
    ],
  },
  {
    name: "sliding window, 10/10s, is given back without a receipt",
    algorithm: "sliding_window",
    windows: [testWindow(10, 10 * second)],
    steps: [
      { at: 5000, cost: 10, answer: "allowed", remaining: 0, because: "all ten" },
      { at: 15_000, cost: 2, answer: "allowed", remaining: 3, because: "10 × 0.5 + 2" },
      {
        at: 15_000,
        first: { does: "credit", cost: 3 },
        cost: 1,
        answer: "allowed",
        remaining: 5,
        because: "the two, and two of the faded ten, which are worth one: 8 × 0.5 + 1 = 5",
      },
      {
        at: 15_000,
        first: { does: "credit", cost: 5 },
        cost: 10,
        answer: "allowed",
        remaining: 0,
        because: "that was all there was",
      },
    ],
  },
  {
    name: "sliding log, 5/10s, is given back without a receipt, newest first",
    algorithm: "sliding_log",
    windows: [testWindow(5, 10 * second)],
    steps: [
      { at: 0, cost: 2, answer: "allowed", remaining: 3, because: "two" },
      { at: 4000, cost: 3, answer: "allowed", remaining: 0, because: "three more" },
      {
        at: 6000,
        first: { does: "credit", cost: 4 },
        cost: 5,
        answer: "denied",
        remaining: 4,
        retryAfterMs: 4000,
        resetAfterMs: 4000,
        because: "one of the first two is left, until 10 s",
      },
      {
        at: 6000,
        first: { does: "credit", cost: 4 },
        cost: 5,
        answer: "allowed",
        remaining: 0,
        because: "then none",
      },
    ],
  },
  {
    name: "GCRA, 5/s, whose subject is blocked by hand",
    algorithm: "gcra",
    windows: [testWindow(5, second)],
    blockable: true,
    steps: [
      { at: 0, cost: 1, answer: "allowed", remaining: 4, because: "not blocked" },
      {
        at: 100,
        first: { does: "block", forMs: 10_000 },
        cost: 1,
        answer: "blocked",
        remaining: 0,
        retryAfterMs: 10_000,
        because: "there is room, and no way in",
      },
      {
        at: 5100,
        first: { does: "block", forMs: 1000 },
        cost: 1,
        answer: "blocked",
        remaining: 0,
        retryAfterMs: 5000,
        because: "a shorter block does not shorten it",
      },
      {
        at: 6100,
        first: { does: "block", forMs: 5000 },
        cost: 1,
        answer: "blocked",
        remaining: 0,
        retryAfterMs: 5000,
        because: "one that ends later puts it off",
      },
      {
        at: 6100,
        first: { does: "credit", cost: 100_000 },
        cost: 6,
        answer: "never",
        remaining: 0,
        because: "a credit lifts no block, and what never fits never does",
      },
      { at: 11_099, cost: 1, answer: "blocked", remaining: 0, retryAfterMs: 1, because: "the last millisecond" },
      { at: 11_100, cost: 5, answer: "allowed", remaining: 0, because: "over" },
      { at: 11_100, cost: 1, answer: "denied", remaining: 0, retryAfterMs: 200, because: "denials do not block here" },
      { at: 11_300, cost: 1, answer: "allowed", remaining: 0, because: "as was said" },
    ],
  },
];
