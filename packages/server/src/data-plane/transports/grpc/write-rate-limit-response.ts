import {
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  type Duration,
  RateLimitResponse,
  RateLimitResponse_RateLimit as WrittenLimit,
} from "@sluice/protocol/envoy";
import type { PlainWriter } from "./in-place-writer.ts";

/**
 * Writes Envoy's `RateLimitResponse`, with the bytes of its generated codec. What only some answers have, such as headers to add,
 * is left to that codec.
 */
export function writeRateLimitResponse(response: RateLimitResponse, writer: PlainWriter): void {
  if (!isUsual(response)) {
    writer.raw(RateLimitResponse.encode(response).finish());
    return;
  }
  if (response.overallCode !== 0) writer.uint32(0x08).uint32(response.overallCode);
  for (const status of response.statuses) writeStatus(status, writer);
}

function isUsual(response: RateLimitResponse): boolean {
  return (
    response.responseHeadersToAdd.length === 0 &&
    response.requestHeadersToAdd.length === 0 &&
    response.rawBody.length === 0 &&
    response.dynamicMetadata === undefined &&
    response.quota === undefined &&
    response.statuses.every(({ quota }) => quota === undefined)
  );
}

function writeStatus(status: DescriptorStatus, writer: PlainWriter): void {
  const { code, currentLimit, limitRemaining, durationUntilReset: reset } = status;
  const limit = currentLimit && encodeLimitOnce(currentLimit);
  const resetLength = reset === undefined ? 0 : varintField(reset.seconds) + varintField(reset.nanos);
  const length =
    varintField(code) +
    (limit === undefined ? 0 : 1 + varint(limit.length) + limit.length) +
    varintField(limitRemaining) +
    (reset === undefined ? 0 : 2 + resetLength);
  writer.uint32(0x12).uint32(length);
  if (code !== 0) writer.uint32(0x08).uint32(code);
  if (limit !== undefined) writer.uint32(0x12).uint32(limit.length).raw(limit);
  if (limitRemaining !== 0) writer.uint32(0x18).uint32(limitRemaining);
  if (reset !== undefined) writeDuration(reset, resetLength, writer.uint32(0x22));
}

function writeDuration({ seconds, nanos }: Duration, length: number, writer: PlainWriter): void {
  writer.uint32(length);
  if (seconds !== 0) writer.uint32(0x08).int64(seconds);
  if (nanos !== 0) writer.uint32(0x10).int32(nanos);
}

const limits = new WeakMap<WrittenLimit, Uint8Array>();

/** Answers about the same window share its written limit. */
function encodeLimitOnce(limit: WrittenLimit): Uint8Array {
  let bytes = limits.get(limit);
  if (bytes === undefined) {
    bytes = WrittenLimit.encode(limit).finish();
    limits.set(limit, bytes);
  }
  return bytes;
}

/** The bytes of a field with a number of at least 0: of a tag and the number, or none if that is 0. */
function varintField(value: number): number {
  return value === 0 ? 0 : 1 + varint(value);
}

function varint(value: number): number {
  let length = 1;
  for (let left = value; left >= 128; left = Math.floor(left / 128)) length += 1;
  return length;
}
