import {
  type RateLimitDescriptor_Entry as Entry,
  type RateLimitDescriptor,
  RateLimitRequest,
} from "@sluice/protocol/envoy";
import { FieldReader } from "./field-reader.ts";

/**
 * Reads Envoy's `RateLimitRequest` as the generated codec does, in less time if it has nothing but what is usual: a domain,
 * descriptors of entries, and an addend. The generated codec reads the rest.
 */
export function readRateLimitRequest(bytes: Uint8Array): RateLimitRequest {
  return readUsual(new FieldReader(bytes), bytes.length) ?? RateLimitRequest.decode(bytes);
}

function readUsual(reader: FieldReader, end: number): RateLimitRequest | undefined {
  const request: RateLimitRequest = { domain: "", descriptors: [], hitsAddend: 0 };
  while (reader.at < end) {
    const tag = reader.varint();
    if (tag === 0x0a) request.domain = reader.name(end);
    else if (tag === 0x12) {
      const descriptor = readDescriptor(reader, reader.end(end));
      if (descriptor === undefined) return undefined;
      request.descriptors.push(descriptor);
    } else if (tag === 0x18) request.hitsAddend = reader.varint();
    else return undefined;
  }
  return request;
}

/** Undefined if it has more than entries: its own limit, an addend, or an unknown field. */
function readDescriptor(reader: FieldReader, end: number): RateLimitDescriptor | undefined {
  const entries: Entry[] = [];
  while (reader.at < end) {
    if (reader.varint() !== 0x0a) return undefined;
    const entry = readEntry(reader, reader.end(end));
    if (entry === undefined) return undefined;
    entries.push(entry);
  }
  return { entries, limit: undefined, hitsAddend: undefined, isNegativeHits: false };
}

function readEntry(reader: FieldReader, end: number): Entry | undefined {
  const entry: Entry = { key: "", value: "" };
  while (reader.at < end) {
    const tag = reader.varint();
    if (tag === 0x0a) entry.key = reader.name(end);
    else if (tag === 0x12) entry.value = reader.text(end);
    else return undefined;
  }
  return entry;
}
