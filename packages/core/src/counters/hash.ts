/**
 * A seeded 64-bit hash of strings: HalfSipHash-1-3 over UTF-16 code units, two to a word. Counters in memory are
 * found by it alone, so it has to be one that people who choose their own user ids cannot steer into another's
 * counter; the seed is drawn once per process and never leaves it. The hash itself is never shown to anybody, which is
 * why both halves may be read off after one finalisation.
 */
declare const crypto: { getRandomValues(array: Int32Array): Int32Array };

let seed0 = 0;
let seed1 = 0;
let seeded = false;

/** Receives a hash, so that hashing allocates nothing. */
export interface Hash64 {
  lo: number;
  hi: number;
}

export function hashText(text: string, into: Hash64): void {
  if (!seeded) {
    const random = crypto.getRandomValues(new Int32Array(2));
    seed0 = random[0]!;
    seed1 = random[1]!;
    seeded = true;
  }
  let v0 = seed0;
  let v1 = seed1 ^ 0xee;
  let v2 = 0x6c796765 ^ seed0;
  let v3 = 0x74656462 ^ seed1;
  const length = text.length;
  const even = length & ~1;
  let word = 0;
  for (let i = 0; i < even; i += 2) {
    word = text.charCodeAt(i) | (text.charCodeAt(i + 1) << 16);
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
  // The last word holds what is left over and the length; three rounds more finish.
  word = (length === even ? 0 : text.charCodeAt(even)) | (length << 16);
  v3 ^= word;
  for (let round = 0; round < 4; round++) {
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
    if (round === 0) {
      v0 ^= word;
      v2 ^= 0xee;
    }
  }
  into.lo = v1 ^ v3;
  into.hi = v0 ^ v2;
}
