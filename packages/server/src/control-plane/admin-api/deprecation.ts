/** Says that a route is about to go, and what stands in its place. */
export interface Deprecation {
  /** Deprecated from this day on, in UTC: `2027-01-31`. */
  readonly since: string;
  /** Gone from this day on; at least six months later. */
  readonly sunset: string;
  /** The path that takes its place, as in its table. */
  readonly successor: string;
}

/** Fewest days from a deprecation to its end: six months, however long they are. */
export const minSunsetDays = 184;

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594), and where to go. */
export function renderDeprecation({ since, sunset, successor }: Deprecation): Readonly<Record<string, string>> {
  return {
    deprecation: `@${Date.parse(since) / 1_000}`,
    sunset: new Date(sunset).toUTCString(),
    link: `<${successor}>; rel="successor-version"`,
  };
}
