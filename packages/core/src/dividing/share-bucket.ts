import { noShare, type Share } from "./fill-shares.ts";

/** What a holder has left of its share: a bucket whose size and rate change while it is in use. */
export interface ShareBucket {
  readonly share: Share;
  readonly tokens: number;
  readonly atMs: number;
  /** When the share lapses, and everything in the bucket with it. */
  readonly untilMs: number;
}

export const emptyBucket: ShareBucket = { share: noShare, tokens: 0, atMs: 0, untilMs: Number.NEGATIVE_INFINITY };

/** The bucket as it is now. */
export function refill(bucket: ShareBucket, nowMs: number): ShareBucket {
  const { share, tokens, atMs, untilMs } = bucket;
  if (nowMs >= untilMs) return { ...emptyBucket, atMs: Math.max(nowMs, atMs) };
  // A clock that goes back refills nothing twice.
  const elapsedMs = Math.max(nowMs - atMs, 0);
  const refilled = Math.min(tokens + (share.rate * elapsedMs) / 1_000, share.burst);
  return { ...bucket, tokens: refilled, atMs: Math.max(nowMs, atMs) };
}

/**
 * The same with another share, after every exchange. A smaller share loses what no longer fits. A larger one gains
 * nothing at once: burst for a new or grown holder is taken from what refills, because others may still have its tokens.
 */
export function resize(
  bucket: ShareBucket,
  share: Share,
  { untilMs, nowMs }: { readonly untilMs: number; readonly nowMs: number },
): ShareBucket {
  const { tokens, atMs } = refill(bucket, nowMs);
  if (nowMs >= untilMs) return { ...emptyBucket, atMs };
  return { share, tokens: Math.min(tokens, share.burst), atMs, untilMs };
}

/** Takes the cost if there is room for all of it. */
export function takeFrom(
  bucket: ShareBucket,
  cost: number,
  nowMs: number,
): { readonly allowed: boolean; readonly bucket: ShareBucket } {
  const now = refill(bucket, nowMs);
  if (now.tokens < cost) return { allowed: false, bucket: now };
  return { allowed: true, bucket: { ...now, tokens: now.tokens - cost } };
}
