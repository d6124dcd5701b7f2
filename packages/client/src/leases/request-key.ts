import type { CheckRequest } from "sluice";

/** Longer keys are not counted, and so never leased. */
const maxKeyLength = 1_024;

/**
 * One text for all checks with the same counters: domain, dimensions and named policies, separated by their lengths.
 * Undefined if it would be too long to store.
 */
export function requestKey({ domain = "", dimensions, policies }: CheckRequest): string | undefined {
  let key = `${domain.length} ${domain}`;
  for (const name in dimensions) {
    const value = dimensions[name]!;
    key += `${name.length} ${value.length} ${name}${value}`;
  }
  if (policies !== undefined) {
    key += "/";
    for (const policy of policies) key += `${policy.length} ${policy}`;
  }
  return key.length > maxKeyLength ? undefined : key;
}
