import type { Limit, Policy, PolicySet, Window } from "sluice";

/** The set with every window of one policy multiplied, bursts as well. Limits of single subjects stay as they are. */
export function scalePolicy(set: PolicySet, id: string, factor: number): PolicySet {
  const scale = (policy: Policy): Policy =>
    policy.id === id ? { ...policy, limits: policy.limits.map((limit) => scaleLimit(limit, factor)) } : policy;
  const { fallback } = set;
  return {
    ...set,
    policies: set.policies.map(scale),
    ...(fallback === undefined ? {} : { fallback: scale(fallback) }),
  };
}

function scaleLimit(limit: Limit, factor: number): Limit {
  const scale = (window: Window): Window => scaleWindow(window, factor);
  const tiers = Object.entries(limit.tiers).map(([tier, { windows }]) => [tier, { windows: windows.map(scale) }]);
  return { ...limit, windows: limit.windows.map(scale), tiers: Object.fromEntries(tiers) };
}

/** Whole amounts stay whole, and at least 1: a limit of 0 requests is another policy. */
export function scaleWindow(window: Window, factor: number): Window {
  const whole = (amount: number): number => Math.max(1, Math.round(amount * factor));
  const limit = Number.isInteger(window.limit) ? whole(window.limit) : window.limit * factor;
  return { ...window, limit, burst: whole(window.burst) };
}
