/** Numbers from 0 up to 1, the same ones for the same seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Draws keys 0 … `keys` − 1, of which key k occurs 1/(k+1) as often as the first: Zipf's law with exponent 1. */
export function createZipf(keys: number, random: () => number): () => number {
  const upTo = new Float64Array(keys);
  let sum = 0;
  for (let k = 0; k < keys; k++) {
    sum += 1 / (k + 1);
    upTo[k] = sum;
  }
  return () => findPlace(upTo, random() * sum);
}

/** Keys 0 … `keys` − 1, each once, in random order. */
export function shuffledKeys(keys: number, random: () => number): Int32Array {
  const shuffled = keysInOrder(keys);
  for (let i = keys - 1; i > 0; i--) {
    const other = Math.floor(random() * (i + 1));
    [shuffled[i], shuffled[other]] = [shuffled[other]!, shuffled[i]!];
  }
  return shuffled;
}

export function keysInOrder(keys: number): Int32Array {
  return Int32Array.from({ length: keys }, (_, k) => k);
}

/** The first index with a larger value. */
function findPlace(upTo: Float64Array, value: number): number {
  let low = 0;
  let high = upTo.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (upTo[middle]! > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
