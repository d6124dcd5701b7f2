import { normalizeEndpoint } from "./endpoint-path.ts";
import { ipSubject } from "./ip-address.ts";

/**
 * The one form that all spellings of a value share, and that it is counted by. A value that should be an address but is
 * not stays as it is.
 */
export function canonicalValue(dimension: string, value: string, ipv6PrefixBits?: number): string {
  switch (dimension) {
    case "ip":
      return ipSubject(value, ipv6PrefixBits) ?? value;
    case "endpoint":
      return normalizeEndpoint(value);
    case "method":
      return value.toUpperCase();
    default:
      return value;
  }
}
