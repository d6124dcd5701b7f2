import { type Metadata, type StatusObject, status as statusCodes } from "@grpc/grpc-js";
import { readRateLimit } from "../reading/read-rate-limit.ts";
import { findRequestedWaitMs } from "../retry/retry-rules.ts";
import { decodeRetryDelayMs } from "./decode-retry-delay.ts";

export interface RequestedWait {
  /** How long a refusal asks to wait. Undefined if the status is not a refusal. */
  readonly ms: number | undefined;
  /** Whether the same call may be made again after that. */
  readonly repeat: boolean;
}

const noRefusal: RequestedWait = { ms: undefined, repeat: false };

/**
 * Reads a status that may mean "not now, but later". RESOURCE_EXHAUSTED does if it says how long, which an error about a
 * too large message does not. UNAVAILABLE does if the server itself says when to retry.
 */
export function readRequestedWait(status: StatusObject, initial: Metadata | undefined, nowMs: number): RequestedWait {
  const { code, metadata } = status;
  if (code !== statusCodes.RESOURCE_EXHAUSTED && code !== statusCodes.UNAVAILABLE) return noRefusal;
  const pushback = metadata?.get("grpc-retry-pushback-ms") ?? [];
  // Anything but a number of milliseconds, a negative one above all, means that the call must not be retried.
  const pushed = pushback.every((value) => /^\d{1,10}$/.test(String(value)));
  const waits = pushed ? pushback.map(Number) : [];
  for (const bytes of metadata?.get("grpc-status-details-bin") ?? []) {
    const delayMs = typeof bytes === "string" ? undefined : decodeRetryDelayMs(bytes);
    if (delayMs !== undefined) waits.push(delayMs);
  }
  if (code === statusCodes.RESOURCE_EXHAUSTED) {
    const readings = [metadata, initial].map((fields) => readRateLimit(fields?.getMap() ?? {}, { nowMs }));
    // A reset counts only if there is nothing more exact.
    const requested = readings.map(waits.length === 0 ? findRequestedWaitMs : ({ retryAfterMs }) => retryAfterMs);
    waits.push(...requested.filter((ms) => ms !== undefined));
  }
  return waits.length === 0 ? noRefusal : { ms: Math.max(...waits), repeat: pushed };
}
