import { type policySet, type ViewOf, window } from "@sluice/protocol/http";
import type { Limit, Policy, PolicySet, SubjectEntry } from "sluice";
import { type DescriptorNode, renderDuration } from "sluice/internal";

type Body = Readonly<Record<string, unknown>>;

/**
 * Every policy in force, in the format of a policy file, with every default written out. It can be read back as one,
 * except for `descriptors`, which come from files in Envoy's format.
 */
export function policySetBody({
  policies,
  fallback,
  subjects,
  descriptors,
}: PolicySet): Omit<ViewOf<typeof policySet>, "generation"> {
  const named = new Map(policies.filter(({ match }) => match.named).map((policy) => [policy.id, policy]));
  return {
    policies: policies.filter(({ match }) => match.named !== true).map(policyBody),
    default: fallback === undefined ? "none" : commonBody(fallback),
    subjects: subjects.map(subjectBody),
    descriptors: descriptors?.map((one) => ({
      domain: one.domain,
      descriptors: one.descriptors.map((node) => descriptorBody(node, named)),
    })),
  };
}

/**
 * The policies as a file can have them: one version of each. While a version is rolled out, that is the one before it, which applies
 * to everyone who has not the new one yet.
 */
export function withoutTrials(policySet: PolicySet): PolicySet {
  return { ...policySet, policies: policySet.policies.filter(({ trial }) => trial?.side !== "new") };
}

function descriptorBody(node: DescriptorNode, policies: ReadonlyMap<string, Policy>): Body {
  return {
    key: node.key,
    value: node.value,
    mode: node.mode,
    limits: node.limits.map(({ policy, name, unlimited, replaces }) => ({
      policy,
      name,
      unlimited,
      replaces: replaces.length === 0 ? undefined : replaces,
      algorithm: policies.get(policy)?.limits[0]?.algorithm,
      windows: policies.get(policy)?.limits[0]?.windows.map(window.render),
      on_failure: policies.get(policy)?.onFailure,
    })),
    descriptors: node.children.length === 0 ? undefined : node.children.map((one) => descriptorBody(one, policies)),
  };
}

function policyBody(policy: Policy): Body {
  const { match, validFromMs } = policy;
  const method = match.methods.length === 0 ? undefined : match.methods;
  return {
    id: policy.id,
    domain: match.domain,
    match: { endpoint: match.endpoint, method, ...match.dimensions },
    ...commonBody(policy),
    replaces: policy.replaces.length === 0 ? undefined : policy.replaces,
    valid_from: validFromMs === undefined ? undefined : new Date(validFromMs).toISOString(),
    rollout: policy.rollout,
  };
}

function commonBody(policy: Policy): Body {
  return {
    version: policy.version,
    description: policy.description,
    owner: policy.owner,
    mode: policy.mode,
    unlimited: policy.unlimited,
    limits: policy.limits.map(limitBody),
    allow: policy.allow,
    deny: policy.deny,
    cost: Object.fromEntries(policy.cost.map(({ endpoint, cost }) => [endpoint, cost])),
    on_failure: policy.onFailure,
    local_share: policy.localShare,
    local_limits: policy.localLimits?.map(limitBody),
    deadline: policy.deadlineMs === undefined ? undefined : renderDuration(policy.deadlineMs),
    warn_at: policy.warnAt,
    counters: policy.counters,
    max_overshoot: policy.maxOvershoot,
    count_denials: policy.countDenials,
    events: policy.events,
  };
}

function limitBody(limit: Limit): Body {
  const tiers = Object.entries(limit.tiers).map(([tier, { windows }]) => [
    tier,
    { windows: windows.map(window.render) },
  ]);
  return {
    name: limit.name,
    by: limit.by,
    algorithm: limit.algorithm,
    windows: limit.windows.length === 0 ? undefined : limit.windows.map(window.render),
    tiers: Object.fromEntries(tiers),
    missing: limit.missing,
    block_for: renderDuration(limit.blockForMs),
    blockable: limit.blockable,
    on_change: limit.onChange,
  };
}

function subjectBody({ dimension, value, tier, limits }: SubjectEntry): Body {
  const own = limits.map(({ policy, limit, windows, untilMs }) => ({
    policy,
    limit,
    windows: windows.map(window.render),
    until: untilMs === undefined ? undefined : new Date(untilMs).toISOString(),
  }));
  return { [dimension]: value, tier, limits: own.length === 0 ? undefined : own };
}
