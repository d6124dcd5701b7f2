import type { CompiledLimit } from "../limits/compiled-limit.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { rawEndpoint } from "../request/read-dimension.ts";
import { readValues } from "./resolve-limits.ts";
import { Snapshot } from "./snapshot.ts";

const noDimensions: Readonly<Record<string, string>> = {};

/**
 * The limit that a decision names by its policy, version and scope. Without a scope, the policy's first one. Undefined if the
 * snapshot (`Limiter.snapshot`) has none, such as for a limit that a request brought along.
 */
export function findLimit(
  snapshot: object,
  policy: string,
  version: number | undefined,
  scope?: string,
): CompiledLimit | undefined {
  if (!(snapshot instanceof Snapshot)) return undefined;
  const versions = snapshot.findPolicy(policy);
  const found = versions.find((one) => one.policy.version === version) ?? versions[0];
  return found?.limits.find((limit) => scope === undefined || limit.scope === scope);
}

/** The values of a limit's dimensions in a request that it counts; "" for one that is missing. */
export function readLimitValues(
  snapshot: object,
  limit: CompiledLimit,
  { domain, dimensions = noDimensions }: CheckRequest,
): string[] {
  if (!(snapshot instanceof Snapshot)) return [];
  let isFromPath = false;
  for (const segment of limit.segments) if (segment >= 0) isFromPath = true;
  const path = isFromPath ? snapshot.matchEndpoint(domain, rawEndpoint(dimensions)).path : undefined;
  return readValues(limit, dimensions, path ?? "/", false, snapshot.ipv6PrefixBits);
}
