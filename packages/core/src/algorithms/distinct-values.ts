/**
 * How many different values there were: exactly up to 1 536 of them, by a HyperLogLog after that.
 *
 * A value is a hash, a whole number of 53 bits. Few values are kept as they are, in a table of at most 16 KB. More
 * become 16 384 registers of a byte: the low 14 bits choose a register, and it keeps the longest run of zeros that the
 * upper 32 bits of any of its values began with. What the registers cannot tell from an earlier value counts as seen.
 */
export class DistinctValues {
  /** Values by open addressing; 0 is free. Undefined once there are registers. */
  #values: Float64Array | undefined = new Float64Array(firstSlots);
  #registers: Uint8Array | undefined;
  /** How many registers hold each number. */
  #histogram: Uint16Array | undefined;
  #count = 0;

  /** Never more than there were, but for one window in several hundred: see `leastValues`. */
  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return (
      objectBytes +
      (this.#values?.byteLength ?? 0) +
      (this.#registers?.byteLength ?? 0) +
      (this.#histogram?.byteLength ?? 0)
    );
  }

  has(value: number): boolean {
    if (this.#registers !== undefined) return this.#registers[registerOf(value)]! >= rankOf(value);
    return this.#values![this.#find(value || 1)] !== 0;
  }

  add(value: number): void {
    if (this.#registers !== undefined) {
      if (this.#raise(value)) this.#count = Math.max(this.#count, leastValues(this.#estimate()));
      return;
    }
    const at = this.#find(value || 1);
    if (this.#values![at] !== 0) return;
    if (this.#count === exactValues) {
      this.#blur();
      this.add(value);
      return;
    }
    this.#values![at] = value || 1;
    this.#count += 1;
    if (this.#count > this.#values!.length * maxLoad) this.#grow();
  }

  /** The place of a value, or the free one where it belongs. */
  #find(value: number): number {
    const values = this.#values!;
    const mask = values.length - 1;
    let at = value & mask;
    while (values[at] !== 0 && values[at] !== value) at = (at + 1) & mask;
    return at;
  }

  #grow(): void {
    const before = this.#values!;
    if (before.length === mostSlots) return;
    this.#values = new Float64Array(2 * before.length);
    for (const value of before) if (value !== 0) this.#values[this.#find(value)] = value;
  }

  /** Goes on by registers. */
  #blur(): void {
    this.#registers = new Uint8Array(registers);
    this.#histogram = new Uint16Array(mostZeros + 2);
    this.#histogram[0] = registers;
    for (const value of this.#values!) if (value !== 0) this.#raise(value);
    this.#values = undefined;
  }

  #raise(value: number): boolean {
    const register = registerOf(value);
    const rank = rankOf(value);
    const before = this.#registers![register]!;
    if (before >= rank) return false;
    this.#registers![register] = rank;
    this.#histogram![before]! -= 1;
    this.#histogram![rank]! += 1;
    return true;
  }

  #estimate(): number {
    return estimateValues(this.#histogram!, mostZeros);
  }
}

/** Up to so many values are counted exactly, in memory and on servers alike. */
export const exactValues = 1536;

/** The share by which a limit above `exactValues` may let through more values than it allows. */
export const distinctError = 0.05;

/**
 * An estimate made so small that the truth is hardly ever below it, so a limit lets its number through and errs on the
 * side of more. The standard error is 1.04 / √16384 = 0.81 %, and this is three of them.
 */
export function leastValues(estimate: number): number {
  return Math.floor(estimate / 1.025);
}

/** The hash of a value, from 64 bits of which 53 are used. */
export function valueFrom(lo: number, hi: number): number {
  return (hi >>> 0) * 2 ** lowBits + (lo >>> (32 - lowBits));
}

const registers = 16_384;
const lowBits = 21;
const firstSlots = 16;
const mostSlots = 2048;
const maxLoad = 0.75;
const objectBytes = 96;
/** The upper half of a value has 32 bits. */
const mostZeros = 32;

function registerOf(value: number): number {
  return value & (registers - 1);
}

/** One more than the zeros that the upper half begins with. */
function rankOf(value: number): number {
  return Math.clz32(value / 2 ** lowBits) + 1;
}

/**
 * Ertl's estimate of how many values there were (arXiv 1702.01284), which servers use too (PFCOUNT): good at every
 * number of values, without corrections between ranges. `histogram` has an entry for every rank from 0 to `zeros` + 1.
 */
function estimateValues(histogram: Uint16Array, zeros: number): number {
  let sum = registers * tau((registers - histogram[zeros + 1]!) / registers);
  for (let rank = zeros; rank >= 1; rank--) sum = (sum + histogram[rank]!) / 2;
  sum += registers * sigma(histogram[0]! / registers);
  return Math.round(((registers / (2 * Math.LN2)) * registers) / sum);
}

/** What registers that are full contribute. */
function tau(share: number): number {
  if (share === 0 || share === 1) return 0;
  let x = share;
  let weight = 1;
  let sum = 1 - share;
  for (let before = Number.NaN; sum !== before; ) {
    before = sum;
    x = Math.sqrt(x);
    weight /= 2;
    sum -= (1 - x) ** 2 * weight;
  }
  return sum / 3;
}

/** What registers that are empty contribute. */
function sigma(share: number): number {
  if (share === 1) return Number.POSITIVE_INFINITY;
  let x = share;
  let weight = 1;
  let sum = share;
  for (let before = Number.NaN; sum !== before; ) {
    before = sum;
    x *= x;
    sum += x * weight;
    weight *= 2;
  }
  return sum;
}
