import { type Metadata, type StatusObject, status as statusCodes } from "@grpc/grpc-js";
import { readRateLimit } from "../reading/read-rate-limit.ts";
import { findToldWaitMs } from "../retry/retry-rules.ts";
import { decodeRetryDelayMs } from "./decode-retry-delay.ts";

export interface ToldWait {
  /** How long a refusal asks to wait. Undefined where the status is none. */
  readonly ms: number | undefined;
  /** Whether the same call may be made again after it. */
  readonly repeat: boolean;
}

const noRefusal: ToldWait = { ms: undefined, repeat: false };

/**
 * Reads a status that may mean "not now, but later". RESOURCE_EXHAUSTED does where it tells how long, which a message that
 * is too large, say, does not. UNAVAILABLE does where the server itself says when to come back.
 */
export function readToldWait(status: StatusObject, initial: Metadata | undefined, nowMs: number): ToldWait {
  const { code, metadata } = status;
  if (code !== statusCodes.RESOURCE_EXHAUSTED && code !== statusCodes.UNAVAILABLE) return noRefusal;
  const pushback = metadata?.get("grpc-retry-pushback-ms") ?? [];
  // Anything but a number of milliseconds, a negative one above all, means that there is to be no retry.
  const pushed = pushback.every((value) => /^\d{1,10}$/.test(String(value)));
  const waits = pushed ? pushback.map(Number) : [];
  for (const bytes of metadata?.get("grpc-status-details-bin") ?? []) {
    const delayMs = typeof bytes === "string" ? undefined : decodeRetryDelayMs(bytes);
    if (delayMs !== undefined) waits.push(delayMs);
  }
  if (code === statusCodes.RESOURCE_EXHAUSTED) {
    const readings = [metadata, initial].map((fields) => readRateLimit(fields?.getMap() ?? {}, { nowMs }));
    // A reset is for who is told nothing more exact.
    const told = readings.map(waits.length === 0 ? findToldWaitMs : ({ retryAfterMs }) => retryAfterMs);
    waits.push(...told.filter((ms) => ms !== undefined));
  }
  return waits.length === 0 ? noRefusal : { ms: Math.max(...waits), repeat: pushed };
}
