import type { Problem } from "sluice";
import { maxCost, maxDimensionLength } from "sluice/internal";
import { boolean, integer, listOf, mapOf, objectOf, refine, type Shape, text } from "sluice/shape";
import { findIpProblem } from "../../data-plane/service/find-ip-problem.ts";

/** A request in the vocabulary of a token bucket, and its dimensions. */
export interface RateLimitRequest extends RateLimitFields {
  readonly dimensions: Readonly<Record<string, string>>;
}

interface RateLimitFields {
  readonly identifier: string;
  readonly resource: string;
  readonly tokens?: number;
  readonly scope?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly limit_hierarchy?: readonly (readonly [scope: string, resource: string])[];
  readonly consume?: boolean;
}

const name = text({ max: 128 });
const anything: Shape<unknown> = { name: "anything", schema: {}, read: (value) => value };

/** A scope is a dimension; these ones mean something else in this request. */
const notScopes: ReadonlySet<string> = new Set(["scope", "resource", "tier", "subject", "__proto__"]);
const scope = refine(name, (value, reading) =>
  notScopes.has(value)
    ? reading.problem(`must be who is limited, such as user, ip or tenant, but is ${JSON.stringify(value)}`)
    : value,
);

const pair: Shape<readonly [scope: string, resource: string]> = refine(
  listOf(name, { min: 2, max: 2 }),
  ([level = "", resource = ""], reading) => {
    reading.within(0, scope, level);
    return [level, resource] as const;
  },
  "a pair of scope and resource",
);

const words: Shape<RateLimitFields> = objectOf(
  { identifier: text({ max: maxDimensionLength }), resource: name },
  {
    tokens: integer({ min: 1, max: maxCost }),
    scope,
    metadata: mapOf(name, anything, { max: 64 }),
    limit_hierarchy: listOf(pair, { min: 1, max: 16 }),
    consume: boolean,
  },
);

export const rateLimitShape: Shape<RateLimitRequest> = refine(words, (asked, reading) => {
  const found = findDimensions(asked);
  for (const { path, message } of findProblems(found)) reading.problem(message, ...path);
  const dimensions = Object.fromEntries(found.map(({ dimension, value }) => [dimension, value]));
  return { ...asked, dimensions };
});

/**
 * The subject of a level that only the default policy decides: `global` for the one level of all, otherwise found as
 * for policies. A level that is missing in the metadata counts the identifier.
 */
export function levelDimensions(
  { identifier, dimensions }: RateLimitRequest,
  [level, resource]: readonly [scope: string, resource: string],
): Readonly<Record<string, string>> {
  const value = dimensions[level] ?? (level === "global" ? level : identifier);
  const isWho = level !== "ip" || findIpProblem(value) === undefined;
  return { scope: level, resource, identifier: value, ...(isWho && { [level]: value }) };
}

/** A dimension, and its source field. */
interface FoundDimension {
  readonly dimension: string;
  readonly value: string;
  readonly path: Problem["path"];
}

/** `ip` of a hierarchy is found in the metadata as `ip`, `ip_address` or `ip_id`; `tier` is passed on. Later ones win. */
function findDimensions(asked: RateLimitFields): readonly FoundDimension[] {
  const { identifier, resource, scope: ownScope = "user", metadata = {}, limit_hierarchy: levels = [] } = asked;
  const found: FoundDimension[] = [];
  const pass = (dimension: string, keys: readonly string[]): void => {
    const key = keys.find((one) => metadata[one] !== undefined && metadata[one] !== null);
    const value = key === undefined ? undefined : metadata[key];
    if (typeof value !== "string" && typeof value !== "number") return;
    found.push({ dimension, value: String(value), path: ["metadata", key!] });
  };
  pass("tier", ["tier"]);
  for (const [level] of levels) if (level !== ownScope) pass(level, [level, `${level}_address`, `${level}_id`]);
  return [
    ...found,
    { dimension: ownScope, value: identifier, path: ["identifier"] },
    { dimension: "scope", value: ownScope, path: ["scope"] },
    { dimension: "resource", value: resource, path: ["resource"] },
    { dimension: "identifier", value: identifier, path: ["identifier"] },
  ];
}

function findProblems(found: readonly FoundDimension[]): readonly Problem[] {
  return found.flatMap(({ dimension, value, path }): Problem[] => {
    if (value.length > maxDimensionLength)
      return [{ path, message: `must have at most ${maxDimensionLength} characters, but has ${value.length}` }];
    const problem = dimension === "ip" ? findIpProblem(value) : undefined;
    return problem === undefined ? [] : [{ path, message: problem }];
  });
}
