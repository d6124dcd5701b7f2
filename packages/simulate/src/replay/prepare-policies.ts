import type { Limit, Policy, PolicySet } from "sluice";
import { identifyingDimensions, limitScope } from "sluice/internal";

/** Among what a recording carries: every dimension that requests had. */
export const everyDimension = "*";

/** Something that the policies ask and the recording does not answer. */
export interface LeftOut {
  readonly policy: string;
  /** The limit, if it is about one. */
  readonly scope?: string;
  readonly kind: "limit" | "match" | "list" | "rollout" | "tiers" | "named" | "sampled";
  /** Dimensions that the recording does not carry. */
  readonly missing: readonly string[];
  /** What follows, in a sentence. */
  readonly message: string;
}

export interface PreparedPolicies {
  readonly policies: PolicySet;
  readonly leftOut: readonly LeftOut[];
}

/**
 * The policies as a recording can answer them. Limits by dimensions that it does not carry are left out, because all of
 * its requests would share one counter; whatever else depends on such dimensions is named. Unless they are to stay as
 * they are, policies that begin later count as begun: the question is what they would do.
 */
export function preparePolicies(
  set: PolicySet,
  carried: ReadonlySet<string>,
  sampledBy: string | undefined = undefined,
  begin: "begun" | "as they are" = "begun",
): PreparedPolicies {
  const leftOut: LeftOut[] = [];
  const prepare = (policy: Policy): Policy => {
    const prepared = preparePolicy(policy, carried, begin, leftOut);
    return sampledBy === undefined ? prepared : withoutShared(prepared, sampledBy, leftOut);
  };
  const { fallback } = set;
  return {
    policies: {
      ...set,
      policies: set.policies.map(prepare),
      ...(fallback === undefined ? {} : { fallback: prepare(fallback) }),
    },
    leftOut,
  };
}

function preparePolicy(
  policy: Policy,
  carried: ReadonlySet<string>,
  begin: "begun" | "as they are",
  leftOut: LeftOut[],
): Policy {
  const { id, match } = policy;
  const note = (kind: LeftOut["kind"], missing: readonly string[], message: string, scope?: string): void => {
    leftOut.push({ policy: id, ...(scope === undefined ? {} : { scope }), kind, missing, message });
  };
  if (match.named === true && !carried.has(everyDimension))
    note("named", [], `policy ${id} applies only to requests that ask for it by its id, and a log does not say which`);
  const absent = (names: readonly string[]): readonly string[] => names.filter((name) => !isCarried(name, carried));
  const unmatched = absent(Object.keys(match.dimensions));
  if (unmatched.length > 0)
    note("match", unmatched, `policy ${id} matches by ${unmatched.join(", ")}, so it matches no request of this log`);
  const unlisted = absent([...new Set([...Object.keys(policy.allow), ...Object.keys(policy.deny)])]);
  if (unlisted.length > 0)
    note("list", unlisted, `the lists of policy ${id} by ${unlisted.join(", ")} name no request of this log`);
  const rollout = policy.rollout === undefined ? [] : absent([policy.rollout.by]);
  if (rollout.length > 0)
    note("rollout", rollout, `policy ${id} is rolled out by ${rollout.join(", ")}, so no request of this log is in it`);
  const params = new Set(findParams(match.endpoint));
  const limits = policy.limits.filter((limit) => {
    const missing = absent(limit.by).filter((name) => !params.has(name));
    const scope = limitScope(limit);
    if (missing.length === 0) {
      noteTiers(limit, carried, () =>
        note(
          "tiers",
          ["tier"],
          `limit ${scope} of policy ${id} has tiers, and this log does not say which requests are in one`,
          scope,
        ),
      );
      return true;
    }
    note("limit", missing, `limit ${scope} of policy ${id} is by ${missing.join(", ")}, and was left out`, scope);
    return false;
  });
  const { validFromMs, ...begun } = policy;
  return { ...begun, ...(begin === "as they are" && validFromMs !== undefined && { validFromMs }), limits };
}

/**
 * Of a sample of subjects, a limit that others share has seen only some of its requests. Limits that count by the
 * sampled dimension have seen all of theirs, or none.
 */
function withoutShared(policy: Policy, sampledBy: string, leftOut: LeftOut[]): Policy {
  const limits = policy.limits.filter((limit) => {
    if (limit.by.includes(sampledBy)) return true;
    const scope = limitScope(limit);
    const message = `limit ${scope} of policy ${policy.id} is shared by subjects that were not recorded, because the recording is a sample by ${sampledBy}; it was left out`;
    leftOut.push({ policy: policy.id, scope, kind: "sampled", missing: [sampledBy], message });
    return false;
  });
  return { ...policy, limits };
}

function noteTiers({ tiers }: Limit, carried: ReadonlySet<string>, note: () => void): void {
  if (Object.keys(tiers).length > 0 && !isCarried("tier", carried)) note();
}

function isCarried(name: string, carried: ReadonlySet<string>): boolean {
  if (carried.has(everyDimension)) return true;
  if (name !== "subject") return carried.has(name);
  return identifyingDimensions.some((one) => carried.has(one));
}

/** The names in `/v1/tenants/{tenant}/**`. */
function findParams(endpoint: string = ""): readonly string[] {
  return [...endpoint.matchAll(/\{([^{}]+)\}/g)].map(([, name = ""]) => name);
}
