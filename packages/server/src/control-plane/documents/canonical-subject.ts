import { type CheckRequest, canonicalValue } from "sluice";
import { defaultIpv6PrefixBits } from "sluice/store";

const prefixForm = /\/(\d{1,3})$/;

/**
 * A subject in the one form that all spellings of it share, and that it is counted by: an IPv6 address as its network
 * (`2001:db8::/64`), which may also be written itself. What should be an address and is none stays as it is.
 */
export function canonicalSubject(
  dimension: string,
  value: string,
  ipv6PrefixBits: number = defaultIpv6PrefixBits,
): string {
  const isNetwork = dimension === "ip" && prefixForm.exec(value)?.[1] === String(ipv6PrefixBits) && value.includes(":");
  return canonicalValue(dimension, isNetwork ? value.replace(prefixForm, "") : value, ipv6PrefixBits);
}

/** What a request by this subject says: of a network, an address in it. */
export function dimensionsOf(dimension: string, value: string): NonNullable<CheckRequest["dimensions"]> {
  return { [dimension]: dimension === "ip" ? value.replace(prefixForm, "") : value };
}
