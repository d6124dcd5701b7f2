import { createHash } from "node:crypto";

/** A value to be counted, made ready for scripts. */
export interface ValueCode {
  /** Eight bytes of its SHA-256: what servers keep. The hash covers UTF-16 units, as for subjects. */
  readonly bytes: Buffer;
  /** The register of a server's HyperLogLog that `PFADD` of these bytes raises, and to what: register × 64 + rank. */
  readonly place: number;
}

/** Windows of one limit count the same value. */
let lastValue: string | undefined;
let lastCode: ValueCode | undefined;

export function encodeValue(value: string): ValueCode {
  if (value === lastValue && lastCode !== undefined) return lastCode;
  const bytes = createHash("sha256").update(value, "utf16le").digest().subarray(0, 8);
  lastValue = value;
  lastCode = { bytes, place: findPlace(bytes) };
  return lastCode;
}

const registerBits = 14n;
const rankBits = 50n;

/** As servers do it: the low 14 bits of the hash choose the register, and the zeros that the others end with its rank. */
function findPlace(bytes: Buffer): number {
  const hash = murmur64(bytes.readBigUInt64LE());
  const register = Number(hash & ((1n << registerBits) - 1n));
  const rest = (hash >> registerBits) | (1n << rankBits);
  let rank = 1;
  while (((rest >> BigInt(rank - 1)) & 1n) === 0n) rank += 1;
  return register * 64 + rank;
}

const multiplier = 0xc6a4a7935bd1e995n;
const seed = 0xadc83b19n;

function wrap(number: bigint): bigint {
  return BigInt.asUintN(64, number);
}

function mix(number: bigint): bigint {
  return number ^ (number >> 47n);
}

/** MurmurHash64A of eight bytes, with the seed of servers. */
function murmur64(block: bigint): bigint {
  const mixed = wrap(mix(wrap(block * multiplier)) * multiplier);
  const hash = wrap((seed ^ wrap(8n * multiplier) ^ mixed) * multiplier);
  return mix(wrap(mix(hash) * multiplier));
}
