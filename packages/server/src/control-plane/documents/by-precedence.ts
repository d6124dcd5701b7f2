/**
 * The order in which limits of one subject are asked, the first that fits a limit decides: an override before a custom limit,
 * and what is said of one limit before what is said of all of a policy.
 */
export function byPrecedence(one: OwnedLimit, other: OwnedLimit): number {
  const [a, b] = [keyOf(one), keyOf(other)];
  return a < b ? -1 : Number(a > b);
}

interface OwnedLimit {
  readonly policy: string;
  /** Absent or "": every limit of the policy. */
  readonly limit?: string | undefined;
  /** Absent: for good. */
  readonly untilMs?: number | undefined;
}

function keyOf({ policy, limit = "", untilMs }: OwnedLimit): string {
  return `${untilMs === undefined ? 1 : 0}${limit === "" ? 1 : 0} ${policy} ${limit}`;
}
