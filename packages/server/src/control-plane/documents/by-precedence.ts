/**
 * The order in which the limits of one subject are tried; the first that fits decides. An override precedes a custom
 * limit, and a limit for one limit of a policy precedes one for all of them.
 */
export function byPrecedence(one: OwnedLimit, other: OwnedLimit): number {
  const [a, b] = [precedenceKey(one), precedenceKey(other)];
  return a < b ? -1 : Number(a > b);
}

interface OwnedLimit {
  readonly policy: string;
  /** Absent or "": every limit of the policy. */
  readonly limit?: string | undefined;
  /** Absent: it does not end. */
  readonly untilMs?: number | undefined;
}

function precedenceKey({ policy, limit = "", untilMs }: OwnedLimit): string {
  return `${untilMs === undefined ? 1 : 0}${limit === "" ? 1 : 0} ${policy} ${limit}`;
}
