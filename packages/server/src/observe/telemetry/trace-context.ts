import { randomFillSync } from "node:crypto";
import type { TraceCarrier } from "./tracing.ts";

/** The span that a request was sent under. Ids are in hexadecimal. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether its sender records it. */
  readonly sampled: boolean;
  readonly traceState: string | undefined;
}

const maxTraceState = 512;

/** Parses W3C's `traceparent` and `tracestate`. Undefined if there is none that is valid. */
export function parseTraceParent({ traceparent, tracestate }: TraceCarrier): TraceParent | undefined {
  if (typeof traceparent !== "string") return undefined;
  const [, version, traceId, spanId, flags, rest] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(traceparent.trim()) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId!) || /^0+$/.test(spanId!)) return undefined;
  const state = typeof tracestate === "string" && /^[\x20-\x7e]+$/.test(tracestate) ? tracestate : undefined;
  return {
    traceId: traceId!,
    spanId: spanId!,
    sampled: (Number.parseInt(flags!, 16) & 1) === 1,
    traceState: state !== undefined && state.length <= maxTraceState ? state : undefined,
  };
}

export const newTraceId = (): string => randomHex(16);
export const newSpanId = (): string => randomHex(8);

/** Random bytes are drawn in stock: one by one they cost more than the span. */
const stock = Buffer.alloc(4096);
let used = stock.length;

function randomHex(bytes: number): string {
  if (used + bytes > stock.length) {
    randomFillSync(stock);
    used = 0;
  }
  used += bytes;
  return stock.toString("hex", used - bytes, used);
}
