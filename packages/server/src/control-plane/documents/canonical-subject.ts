import type { CheckRequest } from "sluice";
import { canonicalValue, defaultIpv6PrefixBits } from "sluice/internal";

const prefixForm = /\/(\d{1,3})$/;

/**
 * A subject in the canonical form that all spellings share, and that it is counted by: an IPv6 address as its network
 * (`2001:db8::/64`), which may be given directly, too. A value that should be an address and is not stays unchanged.
 */
export function canonicalSubject(
  dimension: string,
  value: string,
  ipv6PrefixBits: number = defaultIpv6PrefixBits,
): string {
  const isNetwork = dimension === "ip" && prefixForm.exec(value)?.[1] === String(ipv6PrefixBits) && value.includes(":");
  return canonicalValue(dimension, isNetwork ? value.replace(prefixForm, "") : value, ipv6PrefixBits);
}

/** The value that a request by this subject carries: for a network, an address in it. */
export function dimensionsFromSubject(dimension: string, value: string): NonNullable<CheckRequest["dimensions"]> {
  return { [dimension]: dimension === "ip" ? value.replace(prefixForm, "") : value };
}
