import { noValues } from "./match-shape.ts";
import { anything } from "./names.ts";
import type { Policy } from "./policy.ts";

export const defaultPolicyId = "default";

/** By how much of a limit leases may exceed it by default: 1 %. */
export const defaultMaxOvershoot = 0.01;

/** Applies if nothing else does and no other default was written: 10 a second, 1 000 at once, for each subject. */
export const defaultPolicy: Policy = {
  id: defaultPolicyId,
  version: 1,
  match: { domain: anything, methods: [], dimensions: noValues },
  limits: [
    {
      // Filled in by the limiter: the subject of the request.
      by: ["subject"],
      algorithm: "token_bucket",
      windows: [{ limit: 10, per: { kind: "ms", ms: 1_000 }, burst: 1_000 }],
      tiers: Object.freeze(Object.create(null)),
      missing: "share",
      blockForMs: 0,
      blockable: false,
      onChange: "keep",
    },
  ],
  unlimited: false,
  mode: "enforce",
  allow: noValues,
  deny: noValues,
  cost: [],
  replaces: [],
  onFailure: "open",
  onFailureChosen: true,
  warnAt: 0.8,
  counters: "auto",
  maxOvershoot: defaultMaxOvershoot,
  countDenials: false,
  events: "summary",
};

/** Takes the place of `defaultPolicy` if a written policy has its id. */
export const renamedDefaultPolicy: Policy = { ...defaultPolicy, id: "default.fallback" };

/**
 * Whether a fallback is the built-in one, under either id, rather than a written one. Compared by limits, and by
 * content, because policies parsed by another thread are copies.
 */
export function isBuiltInDefault({ limits }: Policy): boolean {
  return limits === defaultPolicy.limits || JSON.stringify(limits) === builtInLimits;
}

const builtInLimits = JSON.stringify(defaultPolicy.limits);
