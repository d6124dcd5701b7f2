import type { RateLimitResponse_DescriptorStatus as DescriptorStatus, HeaderValue } from "@sluice/protocol/envoy";

/**
 * `RateLimit-Limit`, `-Remaining` and `-Reset` of the descriptor nearest its limit, without `-Reset` if nothing ever
 * comes back. None if no limit applies.
 */
export function renderLimitHeaders(statuses: readonly DescriptorStatus[]): HeaderValue[] {
  const limited = statuses.filter(({ currentLimit }) => currentLimit !== undefined);
  if (limited.length === 0) return [];
  const nearest = limited.reduce((one, other) => (other.limitRemaining < one.limitRemaining ? other : one));
  const { currentLimit, limitRemaining, durationUntilReset: reset } = nearest;
  return [
    header("RateLimit-Limit", currentLimit!.requestsPerUnit),
    header("RateLimit-Remaining", limitRemaining),
    ...(reset === undefined ? [] : [header("RateLimit-Reset", reset.seconds + (reset.nanos > 0 ? 1 : 0))]),
  ];
}

function header(key: string, value: number): HeaderValue {
  return { key, value: String(value), rawValue: new Uint8Array() };
}
