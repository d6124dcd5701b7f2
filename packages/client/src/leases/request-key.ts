import type { CheckRequest } from "sluice";

/** What is longer is not counted, and so never leased. */
const maxKeyLength = 1_024;

/**
 * One text for all checks that are counted alike: domain, dimensions and named policies, told apart by their lengths. Undefined where it
 * would be too long to be kept.
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
