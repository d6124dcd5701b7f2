/**
 * A seeded 64-bit hash of strings: HalfSipHash-1-3. Counters in memory are found by it alone, so it has to be one that
 * people who choose their own user ids cannot steer into another's counter; the seed is drawn once per process and never
 * leaves it. The hash itself is never shown to anybody, which is why both halves may be read off after one finalisation.
 *
 * Four units under 256 make a word, and so do two wider ones. A word of the wide kind is marked in the state, so that no
 * text looks like another that is cut up differently.
 *
 * The round stands here four times: a function for it would have to give back four numbers, one loop for all would ask in each
 * round which it is, and every check hashes.
 */
declare const crypto: { getRandomValues(array: Int32Array): Int32Array };

const wideMark = 0xff;
let seed0 = 0;
let seed1 = 0;
let seeded = false;

/** Receives a hash, so that hashing allocates nothing. */
export interface Hash64 {
  lo: number;
  hi: number;
}

/** `kind` keeps apart texts that mean different things: the hash of a name is not that of a subject spelt the same. */
export function hashText(text: string, into: Hash64, kind = 0): void {
  if (!seeded) {
    const random = crypto.getRandomValues(new Int32Array(2));
    seed0 = random[0]!;
    seed1 = random[1]!;
    seeded = true;
  }
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
