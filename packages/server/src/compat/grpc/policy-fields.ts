import { FailPolicy, type Policy as PolicyMessage, type PolicyWindow, RuleType } from "@sluice/protocol";
import type { Algorithm, Limit, Policy, Window } from "sluice";
import { defaultPolicy, renderDuration } from "sluice/internal";
import { byIdDomain } from "../../control-plane/documents/by-id-domain.ts";
import { defaultPolicyId, readDocument } from "../../control-plane/documents/read-documents.ts";
import type { PolicyDocument } from "../../control-plane/policy-control.ts";

/** The fields of a message that describe a policy, besides its document. */
export type PolicyFields = Pick<
  PolicyMessage,
  "ruleType" | "windows" | "dimensions" | "failPolicy" | "costMap" | "ownerTeam" | "validFrom" | "domain"
>;

export const noFields: PolicyFields = {
  ruleType: RuleType.UNSPECIFIED,
  windows: [],
  dimensions: [],
  failPolicy: FailPolicy.UNSPECIFIED,
  costMap: {},
  ownerTeam: "",
  validFrom: undefined,
  domain: "",
};

const algorithms: Readonly<Record<number, Algorithm>> = {
  [RuleType.UNSPECIFIED]: "gcra",
  [RuleType.GCRA]: "gcra",
  [RuleType.SLIDING_WINDOW_COUNTER]: "sliding_window",
  [RuleType.FIXED_WINDOW]: "fixed_window",
  [RuleType.TOKEN_BUCKET]: "token_bucket",
  [RuleType.LEAKY_BUCKET]: "leaky_bucket",
  [RuleType.SLIDING_LOG]: "sliding_log",
};

const ruleTypes: Readonly<Record<Algorithm, RuleType>> = {
  gcra: RuleType.GCRA,
  sliding_window: RuleType.SLIDING_WINDOW_COUNTER,
  fixed_window: RuleType.FIXED_WINDOW,
  token_bucket: RuleType.TOKEN_BUCKET,
  leaky_bucket: RuleType.LEAKY_BUCKET,
  sliding_log: RuleType.SLIDING_LOG,
};

const failModes: Readonly<Record<number, Policy["onFailure"]>> = {
  [FailPolicy.OPEN]: "open",
  [FailPolicy.CLOSED]: "closed",
  [FailPolicy.LOCAL]: "local",
};

const failPolicies: Readonly<Record<Policy["onFailure"], FailPolicy>> = {
  open: FailPolicy.OPEN,
  closed: FailPolicy.CLOSED,
  local: FailPolicy.LOCAL,
};

export function isRuleType(number: number): boolean {
  return Object.hasOwn(algorithms, number);
}

export function isFailPolicy(number: number): boolean {
  return number === FailPolicy.UNSPECIFIED || Object.hasOwn(failModes, number);
}

/** The policy that the fields describe: each dimension has a separate counter, with every window. */
export function documentFromFields(id: string, fields: PolicyFields): PolicyDocument {
  const { ownerTeam, domain, dimensions, failPolicy, costMap, validFrom } = fields;
  const algorithm = algorithms[fields.ruleType];
  const windows = fields.windows.map(writtenWindow);
  const limit = { algorithm, windows };
  const onFailure = failModes[failPolicy];
  return {
    id,
    ...(ownerTeam !== "" && { owner: ownerTeam }),
    domain: domain === "" ? byIdDomain : domain,
    limits:
      dimensions.length === 0
        ? [limit]
        : dimensions.map((dimension) => ({ ...countedBy(dimension, dimensions), ...limit })),
    ...(Object.keys(costMap).length > 0 && { cost: costMap }),
    ...(onFailure !== undefined && { on_failure: onFailure }),
    ...(validFrom !== undefined && { valid_from: renderTimestamp(validFrom) }),
  };
}

/** A tenant chooses the names of its users, so a user is counted within its tenant if the policy has both. */
function countedBy(
  dimension: string,
  dimensions: readonly string[],
): { readonly name?: string; readonly by: string[] } {
  const within = dimension === "user" && dimensions.includes("tenant");
  return within ? { name: "user", by: ["tenant", "user"] } : { by: [dimension] };
}

/** The dimension from which `countedBy` made a limit. Undefined for other limits; "" if the limit has no dimensions. */
function findDimension({ name, by }: Limit, dimensions: readonly string[]): string | undefined {
  const dimension = by.at(-1) ?? "";
  const made = by.length === 0 ? { by: [] } : countedBy(dimension, dimensions);
  return name === made.name && by.join() === made.by.join() ? dimension : undefined;
}

function writtenWindow({ spanMs, limit, burst }: PolicyWindow): Readonly<Record<string, unknown>> {
  return { limit, per: renderDuration(spanMs), ...(burst !== undefined && burst !== limit && { burst }) };
}

function renderTimestamp({ seconds, nanos }: NonNullable<PolicyMessage["validFrom"]>): string {
  const ms = seconds * 1_000 + Math.floor(nanos / 1e6);
  // Validation of the document reports a time that is out of a Date's range.
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms);
}

/**
 * Whether fields may replace a document: they express all of it, except that users may once have been counted across
 * tenants.
 */
export function mayBeReplacedByFields(id: string, document: PolicyDocument): boolean {
  if (fieldsFromDocument(id, document) !== undefined) return true;
  const { limits } = document;
  if (!Array.isArray(limits)) return false;
  const withinTenant = limits.map((limit: unknown) => {
    const isUser =
      typeof limit === "object" && limit !== null && !("name" in limit) && "by" in limit && String(limit.by) === "user";
    return isUser ? { ...limit, ...countedBy("user", ["tenant"]) } : limit;
  });
  return fieldsFromDocument(id, { ...document, limits: withinTenant }) !== undefined;
}

/** The fields that express all of a policy; undefined if they cannot. */
export function fieldsFromDocument(id: string, document: PolicyDocument): PolicyFields | undefined {
  const { replaces, ...rest } = document;
  const { policy } = id === defaultPolicyId ? { policy: undefined } : readDocument(id, { ...rest, id });
  if (policy === undefined || policy === "none" || replaces !== undefined || !isPlain(policy)) return undefined;
  const [limit] = policy.limits;
  const { algorithm, windows } = limit!;
  const { validFromMs } = policy;
  return {
    ruleType: ruleTypes[algorithm],
    windows: windows.map(windowMessage),
    dimensions: dimensionsIn(policy.limits),
    failPolicy: policy.onFailureChosen ? failPolicies[policy.onFailure] : FailPolicy.UNSPECIFIED,
    costMap: Object.fromEntries(policy.cost.map(({ endpoint, cost }) => [endpoint, cost])),
    ownerTeam: policy.owner ?? "",
    validFrom: validFromMs === undefined ? undefined : timestampFromMs(validFromMs),
    domain: policy.match.domain === byIdDomain ? "" : policy.match.domain,
  };
}

function windowMessage({ per, limit, burst }: Window): PolicyWindow {
  return { spanMs: per.kind === "ms" ? per.ms : 0, limit, burst: burst === limit ? undefined : burst };
}

export function timestampFromMs(ms: number): NonNullable<PolicyMessage["validFrom"]> {
  const seconds = Math.floor(ms / 1_000);
  return { seconds, nanos: (ms - seconds * 1_000) * 1e6 };
}

/** Whether the fields express everything in a policy. */
function isPlain(policy: Policy): boolean {
  const { match, limits } = policy;
  const [first] = limits;
  return (
    first !== undefined &&
    match.endpoint === undefined &&
    match.methods.length === 0 &&
    isEmpty(match.dimensions) &&
    isEmpty(policy.allow) &&
    isEmpty(policy.deny) &&
    policy.description === undefined &&
    policy.mode === "enforce" &&
    policy.rollout === undefined &&
    policy.localShare === undefined &&
    policy.localLimits === undefined &&
    policy.deadlineMs === undefined &&
    policy.warnAt === defaultPolicy.warnAt &&
    policy.counters === defaultPolicy.counters &&
    policy.maxOvershoot === defaultPolicy.maxOvershoot &&
    !policy.countDenials &&
    policy.events === defaultPolicy.events &&
    limits.every((limit) => isPlainLimit(limit) && isSameWindows(limit, first)) &&
    (first.by.length > 0 || limits.length === 1) &&
    limits.every((limit) => findDimension(limit, dimensionsIn(limits)) !== undefined) &&
    new Set(limits.map(({ by }) => by.at(-1))).size === limits.length
  );
}

function dimensionsIn(limits: readonly Limit[]): string[] {
  return limits.flatMap(({ by }) => by.slice(-1));
}

function isPlainLimit({ windows, distinct, tiers, missing, blockForMs, blockable, onChange }: Limit): boolean {
  return (
    windows.every((window) => window.per.kind === "ms" && window.name === undefined) &&
    distinct === undefined &&
    isEmpty(tiers) &&
    missing === "share" &&
    blockForMs === 0 &&
    !blockable &&
    onChange === "keep"
  );
}

function isSameWindows(one: Limit, other: Limit): boolean {
  return one.algorithm === other.algorithm && JSON.stringify(one.windows) === JSON.stringify(other.windows);
}

function isEmpty(record: object): boolean {
  return Object.keys(record).length === 0;
}
