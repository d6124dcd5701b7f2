/**
 * How long a `google.rpc.RetryInfo` in a `google.rpc.Status` asks to wait, in milliseconds; undefined if there is none, or
 * the bytes are not such a message. Reads only these fields, and never beyond the bytes:
 *
 *     Status    { details 3: repeated Any }
 *     Any       { type_url 1: string, value 2: bytes }
 *     RetryInfo { retry_delay 1: Duration }
 *     Duration  { seconds 1: int64, nanos 2: int32 }
 */
export function decodeRetryDelayMs(bytes: Uint8Array): number | undefined {
  if (bytes.length > maxBytes) return undefined;
  const details = readFields(bytes)?.filter(({ field }) => field === 3) ?? [];
  let delayMs: number | undefined;
  for (const { bytes: any } of details.slice(0, maxDetails)) {
    const parts = any === undefined ? undefined : readFields(any);
    const typeUrl = parts?.findLast(({ field }) => field === 1)?.bytes;
    const value = parts?.findLast(({ field }) => field === 2)?.bytes;
    if (typeUrl === undefined || !isRetryInfo(typeUrl)) continue;
    // A message of defaults has no bytes at all.
    const found = decodeRetryInfo(value ?? new Uint8Array());
    if (found !== undefined) delayMs = Math.max(delayMs ?? 0, found);
  }
  return delayMs;
}

/** Metadata is smaller than this in practice: servers bound all of it by 8 or 16 KiB. */
const maxBytes = 64 * 1024;
const maxDetails = 32;
const maxDelayMs = 2_147_483_647_000;

function isRetryInfo(typeUrl: Uint8Array): boolean {
  return typeUrl.length < 256 && String.fromCharCode(...typeUrl).endsWith("/google.rpc.RetryInfo");
}

function decodeRetryInfo(bytes: Uint8Array): number | undefined {
  const retryInfo = readFields(bytes);
  const delay = retryInfo?.findLast(({ field }) => field === 1)?.bytes;
  // Without a delay it says to retry, but not when.
  const duration = delay === undefined ? undefined : readFields(delay);
  if (duration === undefined) return undefined;
  const seconds = duration.findLast(({ field }) => field === 1)?.integer ?? 0n;
  const nanos = duration.findLast(({ field }) => field === 2)?.integer ?? 0n;
  const ms = Number(BigInt.asIntN(64, seconds)) * 1000 + Math.ceil(Number(BigInt.asIntN(32, nanos)) / 1e6);
  return Math.min(maxDelayMs, Math.max(0, ms));
}

interface Field {
  readonly field: number;
  readonly integer?: bigint;
  readonly bytes?: Uint8Array;
}

/** The fields of a message in order, or undefined if it is malformed. */
function readFields(bytes: Uint8Array): readonly Field[] | undefined {
  const fields: Field[] = [];
  let at = 0;
  const readVarint = (): bigint | undefined => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) return undefined;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    return undefined;
  };
  while (at < bytes.length) {
    const tag = readVarint();
    if (tag === undefined || tag > 0xffff_ffffn || tag < 8n) return undefined;
    const field = Number(tag >> 3n);
    const wireType = Number(tag & 7n);
    if (wireType === 0) {
      const integer = readVarint();
      if (integer === undefined) return undefined;
      fields.push({ field, integer });
      continue;
    }
    const length = wireType === 2 ? readVarint() : wireType === 1 ? 8n : wireType === 5 ? 4n : undefined;
    if (length === undefined || length > BigInt(bytes.length - at)) return undefined;
    const end = at + Number(length);
    fields.push(wireType === 2 ? { field, bytes: bytes.subarray(at, end) } : { field });
    at = end;
  }
  return fields;
}
