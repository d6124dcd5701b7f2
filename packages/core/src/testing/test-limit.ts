import type { ResolvedLimit } from "../counters/counter-store.ts";
import type { CompiledLimit } from "../limits/compiled-limit.ts";
import { compileLimits } from "../match/compile-limit.ts";
import type { Algorithm, Limit, Policy, Window } from "../policy/policy.ts";

export interface TestLimit {
  readonly algorithm: Algorithm;
  readonly windows: readonly Window[];
  readonly policy?: string;
  readonly by?: readonly string[];
  readonly name?: string;
  readonly blockForMs?: number;
  readonly blockable?: boolean;
  readonly counters?: Policy["counters"];
  readonly maxOvershoot?: number;
  readonly onFailure?: Policy["onFailure"];
  readonly countDenials?: boolean;
  readonly distinct?: string;
}

/** A window in short: 100 per 1 000 ms, with a burst if it differs. */
export function testWindow(limit: number, perMs: number, burst: number = limit): Window {
  return { limit, per: { kind: "ms", ms: perMs }, burst };
}

/** A policy of given limits with every other field at rest. */
export function testPolicy(id: string, limits: readonly Limit[]): Policy {
  return {
    id,
    version: 1,
    match: { domain: "default", methods: [], dimensions: {} },
    limits,
    unlimited: false,
    mode: "enforce",
    allow: {},
    deny: {},
    cost: [],
    replaces: [],
    onFailure: "open",
    onFailureChosen: true,
    warnAt: 0.8,
    counters: "auto",
    maxOvershoot: 0.01,
    countDenials: false,
    events: "summary",
  };
}

export function compileTestLimit({
  algorithm,
  windows,
  policy,
  by,
  name,
  blockForMs,
  blockable,
  counters = "auto",
  maxOvershoot = 0.01,
  onFailure = "open",
  countDenials = false,
  distinct,
}: TestLimit): CompiledLimit {
  const limit: Limit = {
    ...(name === undefined ? {} : { name }),
    by: by ?? ["user"],
    algorithm,
    ...(distinct === undefined ? {} : { distinct }),
    windows,
    tiers: {},
    missing: "share",
    blockForMs: blockForMs ?? 0,
    blockable: blockable ?? false,
    onChange: "keep",
  };
  const policyFields = { counters, maxOvershoot, onFailure, countDenials };
  return compileLimits({ ...testPolicy(policy ?? "test", [limit]), ...policyFields })[0]!;
}

export function resolvedLimit(limit: CompiledLimit, subject: string, cost = 1, group = 0): ResolvedLimit {
  return { limit, windows: limit.windows, subject, cost, group };
}
