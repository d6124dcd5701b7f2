import type { CompiledLimit } from "../limits/compiled-limit.ts";
import { defaultPolicy } from "../policy/default-policy.ts";
import type { Limit, Policy } from "../policy/policy.ts";
import type { GivenLimit } from "../request/check-request.ts";
import { compileGivenLimits } from "./compile-limit.ts";
import type { Candidate, CompiledPolicy } from "./compiled-policy.ts";
import { findOnlyLimit } from "./find-candidates.ts";

interface Given {
  readonly candidate: Candidate;
  readonly onlyLimit: CompiledLimit | undefined;
}

/** What was compiled from a limit lives as long as the limit: frequent callers keep the object. */
const compiled = new WeakMap<GivenLimit, Given>();

/** The limits that a request brings along, each as if it had a policy to itself. */
export function givenCandidates(limits: readonly GivenLimit[]): readonly Candidate[] {
  return limits.map((limit) => findGiven(limit).candidate);
}

/** The only one, if it is of the commonest kind. */
export function onlyGivenLimit(limits: readonly GivenLimit[]): CompiledLimit | undefined {
  return limits.length === 1 ? findGiven(limits[0]!).onlyLimit : undefined;
}

function findGiven(limit: GivenLimit): Given {
  let given = compiled.get(limit);
  if (given === undefined) {
    const candidate: Candidate = { policy: compileGiven(limit), paths: ["/"], certain: true };
    given = { candidate, onlyLimit: findOnlyLimit([candidate]) };
    compiled.set(limit, given);
  }
  return given;
}

function compileGiven({ name, by, algorithm = "gcra", window, onFailure = "open" }: GivenLimit): CompiledPolicy {
  const limit: Limit = { ...defaultPolicy.limits[0]!, by, algorithm, windows: [window] };
  const policy: Policy = { ...defaultPolicy, id: name, limits: [limit], onFailure };
  return {
    policy,
    limits: compileGivenLimits(policy),
    localLimits: [],
    enforced: true,
    tiersOnly: false,
    methods: undefined,
    conditions: [],
    allow: [],
    deny: [],
    costs: undefined,
  };
}
