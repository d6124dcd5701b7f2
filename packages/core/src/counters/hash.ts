/**
 * A seeded 64-bit hash of strings: HalfSipHash-1-3. Counters in memory are found by it alone, so people who choose
 * their own user ids must not be able to steer theirs into another's counter. The seed is drawn once per process and
 * never leaves it, nor does the hash, which is why both halves may be read off after one finalisation.
 *
 * Four units under 256 make a word, and so do two wider ones. A wide word is marked in the state, so that no text looks
 * like another that is cut up differently.
 *
 * The round is written out four times because every check hashes: a function would have to return four numbers, and a
 * single loop would have to ask in each round which one it is.
 */
declare const crypto: { getRandomValues(array: Int32Array): Int32Array };

const wideMark = 0xff;
const bar = 0x7c;
const backslash = 0x5c;
let seed0 = 0;
let seed1 = 0;
let seeded = false;

/** Receives a hash, so that hashing allocates nothing. */
export interface Hash64 {
  lo: number;
  hi: number;
}

function drawSeed(): void {
  const random = crypto.getRandomValues(new Int32Array(2));
  seed0 = random[0]!;
  seed1 = random[1]!;
  seeded = true;
}

/** `kind` separates texts with different meanings: the hash of a name is not that of a subject spelt the same. */
export function hashText(text: string, into: Hash64, kind = 0): void {
  if (!seeded) drawSeed();
  let v0 = seed0;
  let v1 = seed1 ^ 0xee;
  let v2 = 0x6c796765 ^ seed0 ^ kind;
  let v3 = 0x74656462 ^ seed1;
  const { length } = text;
  let word = 0;
  let i = 0;
  while (i + 3 < length) {
    const a = text.charCodeAt(i);
    const b = text.charCodeAt(i + 1);
    const c = text.charCodeAt(i + 2);
    const d = text.charCodeAt(i + 3);
    if ((a | b | c | d) < 256) {
      word = a | (b << 8) | (c << 16) | (d << 24);
      i += 4;
    } else {
      word = a | (b << 16);
      v2 ^= wideMark;
      i += 2;
    }
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  // At most three units are left over. They share the last word with the length, or take one more if they are wide.
  const a = i < length ? text.charCodeAt(i) : 0;
  const b = i + 1 < length ? text.charCodeAt(i + 1) : 0;
  const c = i + 2 < length ? text.charCodeAt(i + 2) : 0;
  const narrow = (a | b | c) < 256;
  const lastWord = (narrow ? a | (b << 8) | (c << 16) : c) | (length << 24);
  if (!narrow) {
    v2 ^= wideMark;
    word = a | (b << 16);
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  v3 ^= lastWord;
  v0 = (v0 + v1) | 0;
  v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
  v0 = (v0 << 16) | (v0 >>> 16);
  v2 = (v2 + v3) | 0;
  v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
  v0 = (v0 + v3) | 0;
  v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
  v2 = (v2 + v1) | 0;
  v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
  v2 = (v2 << 16) | (v2 >>> 16);
  v0 ^= lastWord;
  // Three rounds on nothing finish.
  v2 ^= 0xee;
  for (let round = 0; round < 3; round++) {
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
  }
  into.lo = v1 ^ v3;
  into.hi = v0 ^ v2;
}

/**
 * `hashText` of two values joined by a bar, as `joinSubject` joins them, without building that text, which takes longer than hashing
 * it. Returns false, and writes no hash, for values that `joinSubject` escapes or that have units of more than a byte.
 */
export function hashJoined(first: string, second: string, into: Hash64): boolean {
  if (!seeded) drawSeed();
  let v0 = seed0;
  let v1 = seed1 ^ 0xee;
  let v2 = 0x6c796765 ^ seed0;
  let v3 = 0x74656462 ^ seed1;
  const split = first.length;
  const length = split + 1 + second.length;
  const fullUnits = length & ~3;
  // Three rounds on nothing finish.
  for (let at = 0; at <= fullUnits + 12; at += 4) {
    let word = 0;
    if (at < fullUnits && (at + 4 <= split || at > split)) {
      // All of it is in one of the values.
      const text = at > split ? second : first;
      const from = at > split ? at - split - 1 : at;
      const a = text.charCodeAt(from);
      const b = text.charCodeAt(from + 1);
      const c = text.charCodeAt(from + 2);
      const d = text.charCodeAt(from + 3);
      if ((a | b | c | d) > 0xff) return false;
      word = a | (b << 8) | (c << 16) | (d << 24);
      if (hasByte(word, bar) || hasByte(word, backslash)) return false;
    } else if (at <= fullUnits) {
      const end = at < fullUnits ? at + 4 : length;
      for (let i = at, shift = 0; i < end; i++, shift += 8) {
        const unit = i < split ? first.charCodeAt(i) : i === split ? bar : second.charCodeAt(i - split - 1);
        if (unit > 0xff || unit === backslash || (unit === bar && i !== split)) return false;
        word |= unit << shift;
      }
      if (at === fullUnits) word |= length << 24;
    } else if (at === fullUnits + 4) v2 ^= 0xee;
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  into.lo = v1 ^ v3;
  into.hi = v0 ^ v2;
  return true;
}

/** Whether one of a word's four bytes is this one. */
function hasByte(word: number, wanted: number): boolean {
  const differing = word ^ (wanted * 0x01010101);
  return ((differing - 0x01010101) & ~differing & 0x80808080) !== 0;
}
