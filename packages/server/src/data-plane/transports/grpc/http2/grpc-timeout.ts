/** Milliseconds in each unit. */
const units: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** Shorter than this is over before anything can be decided, whatever the clock's grain. */
const leastMs = 0.01;

/** How long a caller waits, in milliseconds, by the header `grpc-timeout`: `100m`, `1S`. Undefined if it is malformed. */
export function parseGrpcTimeout(text: string): number | undefined {
  const unit = units[text.slice(-1)];
  const digits = text.slice(0, -1);
  if (unit === undefined || !/^\d{1,8}$/.test(digits)) return undefined;
  const ms = Number(digits) * unit;
  return ms < leastMs ? 0 : ms;
}
