/** Announces that a route will be removed, and what replaces it. */
export interface Deprecation {
  /** The first day on which it is deprecated, in UTC: `2027-01-31`. */
  readonly since: string;
  /** The first day on which it is gone; at least six months later. */
  readonly sunset: string;
  /** The path that replaces it, as in its table. */
  readonly successor: string;
}

/** The fewest days from a deprecation to the removal: six months of any length. */
export const minSunsetDays = 184;

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594), and a link to the replacement. */
export function renderDeprecation({ since, sunset, successor }: Deprecation): Readonly<Record<string, string>> {
  return {
    deprecation: `@${Date.parse(since) / 1_000}`,
    sunset: new Date(sunset).toUTCString(),
    link: `<${successor}>; rel="successor-version"`,
  };
}
