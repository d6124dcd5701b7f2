import type { ResolvedLimit } from "../counters/counter-store.ts";
import type { BlockedSubject } from "../policy/policy.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { rawDimension } from "../request/read-dimension.ts";
import { chargeOnce } from "./charge-once.ts";
import type { Candidate, Candidates, CompiledPolicy } from "./compiled-policy.ts";
import { candidatesFor, namedCandidates } from "./find-candidates.ts";
import { givenCandidates } from "./given-limits.ts";
import { Asked, type OnMissing, resolveLimits } from "./resolve-limits.ts";
import type { EndpointMatch, Snapshot } from "./snapshot.ts";
import type { SubjectDirectory } from "./subject-directory.ts";
import { isOnAny, isSurelyOnAny } from "./value-lists.ts";

/**
 * How the policies resolve a request: the limits to ask, and denials that need no counter. A class rather than a
 * literal, because many of them wait for remote counters: see decision 0012.
 */
export class Resolution {
  readonly limits: readonly ResolvedLimit[];
  /** Denials that need no counter, by enforced policies and by those in shadow mode. */
  readonly refusals: readonly Refusal[];
  /** Policies that apply, but do not limit this request because their allow list names it. */
  readonly exempting: readonly CompiledPolicy[];
  /** The policies that apply, each with the readings of the path that lead to it. */
  readonly candidates: readonly Candidate[];
  /** Versions on trial that match as well, for other subjects than this one. */
  readonly aside: readonly CompiledPolicy[];
  readonly match: EndpointMatch;
  /** The request's values, for limits that are asked only when others cannot be. */
  readonly asked: Asked;

  constructor(
    limits: readonly ResolvedLimit[],
    refusals: readonly Refusal[],
    exempting: readonly CompiledPolicy[],
    { list, aside }: Pick<Candidates, "list" | "aside">,
    match: EndpointMatch,
    asked: Asked,
  ) {
    this.limits = limits;
    this.refusals = refusals;
    this.exempting = exempting;
    this.candidates = list;
    this.aside = aside;
    this.match = match;
    this.asked = asked;
  }
}

/** The policies that decide a request even if it has no limits. */
export function appliedIn({ candidates }: Pick<Resolution, "candidates">): readonly CompiledPolicy[] {
  return candidates.map(({ policy }) => policy);
}

export interface Refusal {
  /** Undefined: the subject is blocked, and no policy applies. */
  readonly policy: CompiledPolicy | undefined;
  readonly reason: "deny_list" | "missing_dimension" | "blocked";
  readonly scope: string | undefined;
  /** False: reported, and not carried out. */
  readonly enforced: boolean;
  /** Of a block: which one, and for how long. */
  readonly block?: BlockedSubject;
  readonly retryAfterMs?: number;
}

/** Whether the request is denied without asking any counter. */
export function isRefused(refusals: readonly Refusal[]): boolean {
  for (const { enforced } of refusals) if (enforced) return true;
  return false;
}

type Dimensions = Readonly<Record<string, string>>;

const noDimensions: Dimensions = {};
const noRefusals: readonly Refusal[] = [];
const noPolicies: readonly CompiledPolicy[] = [];

/** A caller that waits for remote counters passes a list made by `untrackedList`. */
export function resolve(
  snapshot: Snapshot,
  subjects: SubjectDirectory,
  request: CheckRequest,
  epochMs: () => number,
  limits: ResolvedLimit[] = [],
  onMissing?: OnMissing,
): Resolution {
  const dimensions = request.dimensions ?? noDimensions;
  const match = snapshot.matchEndpoint(request.domain, rawDimension(dimensions, "endpoint"));
  const candidates = findCandidates(snapshot, request, match, dimensions, epochMs);
  let { list } = candidates;
  // What is decided about a policy does not apply to a given limit that happens to have the same name.
  const given = request.limits !== undefined;
  const isAnyKnown = !given && (subjects.size !== 0 || snapshot.subjects.size !== 0);
  const known = isAnyKnown ? { running: subjects, written: snapshot.subjects } : undefined;
  const asked = new Asked(request.domain, dimensions, snapshot.ipv6PrefixBits, known, epochMs);
  const { exceptions } = snapshot;
  const blocks = exceptions?.blocks(dimensions, epochMs) ?? noBlocks;
  const nowMs = blocks.length === 0 ? 0 : epochMs();
  let refusals: Refusal[] | undefined = refuseEverywhere(list, blocks, nowMs);
  let exempting: CompiledPolicy[] | undefined;
  let withoutTier = false;
  let applies = false;
  for (let i = 0; ; i++) {
    if (i === list.length) {
      // If every policy that matches is for tiers of other subjects, none applies, and the default does.
      const last = withoutTier && !applies && isMatched(request) ? fallbackBehind(list, snapshot, match) : undefined;
      if (last === undefined) break;
      list = [...list, last];
    }
    const { policy, paths, certain } = list[i]!;
    const before = limits.length;
    const { id } = policy.policy;
    const disabled = given ? undefined : exceptions?.disabled(id, epochMs);
    if (disabled?.mode === "allow") {
      if (policy.enforced) applies = true;
      continue;
    }
    const enforced = policy.enforced && disabled === undefined;
    const block = given ? undefined : blocks.find(({ policies }) => policies?.includes(id));
    if (block !== undefined) {
      refusals ??= [];
      refusals.push(refuseBlocked(policy, block, enforced, nowMs));
      continue;
    }
    if (policy.deny.length > 0 && isOnAny(policy.deny, dimensions, match.readings)) {
      refusals ??= [];
      refusals.push({ policy, reason: "deny_list", scope: undefined, enforced });
      continue;
    }
    if (policy.allow.length > 0 && certain && isSurelyOnAny(policy.allow, dimensions, match.readings)) {
      exempting ??= [];
      exempting.push(policy);
      if (policy.enforced) applies = true;
      continue;
    }
    const cost = findCost(policy, request, match);
    const group = enforced ? 0 : i + 1;
    const lacking = resolveLimits(limits, policy.limits, asked, paths, cost, group, onMissing);
    if (policy.tiersOnly && lacking === undefined && limits.length === before) withoutTier = true;
    else if (policy.enforced && certain) applies = true;
    if (lacking === undefined) continue;
    refusals ??= [];
    refusals.push({ policy, reason: "missing_dimension", scope: lacking.scope, enforced });
  }
  const applied = list === candidates.list ? candidates : { list, aside: candidates.aside };
  return new Resolution(chargeOnce(limits), refusals ?? noRefusals, exempting ?? noPolicies, applied, match, asked);
}

const noBlocks: readonly BlockedSubject[] = [];

/** The refusal of a subject that is blocked everywhere, said by the first policy that applies, if there is one. */
function refuseEverywhere(
  list: readonly Candidate[],
  blocks: readonly BlockedSubject[],
  nowMs: number,
): Refusal[] | undefined {
  const block = blocks.find(({ policies }) => policies === undefined);
  if (block === undefined) return undefined;
  const first = list.find(({ policy }) => policy.enforced);
  return [refuseBlocked(first?.policy, block, true, nowMs)];
}

function refuseBlocked(
  policy: CompiledPolicy | undefined,
  block: BlockedSubject,
  enforced: boolean,
  nowMs: number,
): Refusal {
  const retryAfterMs = Math.max(Math.ceil(block.untilMs - nowMs), 1);
  return { policy, reason: "blocked", scope: undefined, enforced, block, retryAfterMs };
}

/** The default policy, unless it is among those that apply already. */
function fallbackBehind(
  list: readonly Candidate[],
  { fallback }: Snapshot,
  { readings }: EndpointMatch,
): Candidate | undefined {
  if (fallback === undefined || list.some(({ policy }) => policy === fallback)) return undefined;
  return { policy: fallback, paths: readings, certain: true };
}

/** Whether policies are found by what they match. */
function isMatched({ limits, policies }: CheckRequest): boolean {
  return limits === undefined && policies === undefined;
}

function findCandidates(
  snapshot: Snapshot,
  { limits, policies }: CheckRequest,
  match: EndpointMatch,
  dimensions: Dimensions,
  epochMs: () => number,
): Pick<Candidates, "list" | "aside"> {
  if (limits !== undefined) return { list: givenCandidates(limits), aside: [] };
  if (policies !== undefined) return namedCandidates(snapshot, policies, match, dimensions, epochMs);
  return candidatesFor(snapshot, match, dimensions, epochMs);
}

function findCost(policy: CompiledPolicy, request: CheckRequest, match: EndpointMatch): number {
  // A preview with cost 0 asks whether anything at all would pass.
  if (request.cost !== undefined) return request.cost || 1;
  if (policy.costs === undefined) return 1;
  const known = match.costs.get(policy);
  if (known !== undefined) return known;
  // If a path has several readings, the most expensive one counts.
  let dearest = 1;
  for (const path of match.readings) {
    const matching = policy.costs.find(path);
    const best = matching.reduce((one, other) => (other.specificity > one.specificity ? other : one), matching[0]!);
    dearest = Math.max(dearest, best?.cost ?? 1);
  }
  match.costs.set(policy, dearest);
  return dearest;
}
