import { exactValues } from "./algorithms/distinct-values.ts";
import {
  type CounterStore,
  isRecorded,
  type ResolvedLimit,
  type TakeAnswer,
  type WindowReading,
} from "./counters/counter-store.ts";
import type { Decision } from "./decision/decision.ts";
import { describeDistinct } from "./decision/describe-distinct.ts";
import { printable } from "./decision/printable.ts";
import { describeCounting } from "./leases/describe-counting.ts";
import type { Explanation, LimitExplanation, PolicyExplanation } from "./limiter.ts";
import type { CompiledLimit, CompiledWindow } from "./limits/compiled-limit.ts";
import type { CompiledPolicy } from "./match/compiled-policy.ts";
import { whyNot } from "./match/find-candidates.ts";
import { appliedIn, type Resolution } from "./match/resolve.ts";
import { missingIn } from "./match/resolve-limits.ts";
import type { Snapshot } from "./match/snapshot.ts";
import { holds } from "./match/value-lists.ts";
import type { BlockedSubject, DisabledPolicy } from "./policy/policy.ts";
import { renderWindow } from "./policy/render-window.ts";
import type { CheckRequest } from "./request/check-request.ts";
import { rawDimension } from "./request/read-dimension.ts";

/** The most policies that do not apply to list: no reader wants ten thousand. */
const maxPolicies = 100;

/** How the limits of a request stand at one moment. */
export interface Standing {
  readonly answer: TakeAnswer;
  /** Of each limit. */
  readonly windows: readonly (readonly WindowReading[])[];
  /** Whether each limit is decided by what this node holds, unlike its windows at the central store. */
  readonly isHeld: readonly boolean[];
}

/**
 * Asks for the decision and the windows at once, so that requests in between cannot make one contradict the other. Leases of this node
 * decide apart from the windows, and are asked as well.
 */
export async function readStanding(
  counters: CounterStore,
  limits: readonly ResolvedLimit[],
  deadlineMs: number | undefined,
): Promise<Standing> {
  const central = await counters.peek(limits, { deadlineMs, record: true });
  const windows = await Promise.all(
    limits.map((limit, i) => {
      const read = central.records?.[i]?.windows ?? [];
      return read.length > 0 ? read : counters.read(limit);
    }),
  );
  const records = central.records?.map((record, i) =>
    isRecorded(limits[i]!, false) && record !== undefined ? { ...record, windows: [] } : undefined,
  );
  const own = counters.leases === true ? await counters.peek(limits, { deadlineMs }) : central;
  const isHeld = limits.map(
    (limit, i) =>
      describeCounting(limit, counters).allowance > 0 && own.outcomes[i]!.fits !== central.outcomes[i]!.fits,
  );
  const outcomes = central.outcomes.map((outcome, i) => (isHeld[i] === true ? own.outcomes[i]! : outcome));
  return { answer: { ...central, outcomes, records }, windows, isHeld };
}

function describeStanding<Counting extends Pick<LimitExplanation, "counted">>(
  counting: Counting,
  isHeld: boolean,
): Counting {
  return isHeld
    ? { ...counting, counted: `${counting.counted}; a lease of this node decides now, and not these windows` }
    : counting;
}

export function explain(
  snapshot: Snapshot,
  request: CheckRequest,
  resolution: Resolution,
  { windows, isHeld }: Standing,
  decision: Decision,
  counters: Pick<CounterStore, "local" | "leases">,
  epochMs: () => number,
): Explanation {
  return {
    request,
    domain: request.domain ?? "default",
    endpoint: resolution.match.path,
    policies: explainPolicies(snapshot, request, resolution, epochMs),
    limits: resolution.limits.map((resolved, i): LimitExplanation => {
      const tier = [...resolved.limit.tiers].find(([, windows]) => windows === resolved.windows)?.[0];
      return {
        policy: resolved.limit.policy.id,
        scope: resolved.limit.scope,
        subject: resolved.subject,
        counter: `${resolved.limit.identity}|${resolved.subject}`,
        cost: resolved.cost,
        tier,
        missing: missingIn(resolved.limit, resolution.asked, findPath(resolution, resolved.limit)),
        shadow: resolved.group !== 0,
        ...describeStanding(describeCounting(resolved, counters), isHeld[i]!),
        windows: windows[i]!.map((reading) => ({ ...reading, arithmetic: renderArithmetic(reading, resolved.cost) })),
      };
    }),
    decision,
  };
}

/** The path by which a limit's policy applies. */
function findPath({ candidates, match }: Resolution, { policy }: CompiledLimit): string {
  return candidates.find((one) => one.policy.policy === policy)?.paths[0] ?? match.path ?? "/";
}

function explainPolicies(
  snapshot: Snapshot,
  request: CheckRequest,
  resolution: Resolution,
  epochMs: () => number,
): PolicyExplanation[] {
  const applied = appliedIn(resolution);
  const applying: PolicyExplanation[] = applied.map((policy) => ({
    policy: policy.policy.id,
    applies: true,
    why: whyItApplies(policy, snapshot, request, resolution, epochMs),
  }));
  const others: PolicyExplanation[] = [];
  for (const { bucket } of resolution.match.found) {
    const candidates = new Set(bucket.policies);
    for (const policies of bucket.byPresence.values()) for (const one of policies) candidates.add(one);
    for (const byValue of bucket.byValue.values()) {
      for (const policies of byValue.values()) for (const one of policies) candidates.add(one);
    }
    for (const policy of candidates) {
      if (others.length >= maxPolicies) break;
      if (applied.includes(policy)) continue;
      others.push({
        policy: policy.policy.id,
        applies: false,
        why: whyItDoesNot(policy, request, resolution, epochMs),
      });
    }
  }
  return [...applying, ...others];
}

function whyItApplies(
  policy: CompiledPolicy,
  snapshot: Snapshot,
  request: CheckRequest,
  resolution: Resolution,
  epochMs: () => number,
): string {
  const { match, mode, unlimited } = policy.policy;
  const notes: string[] = [];
  const lacking = (limit: CompiledLimit): string =>
    missingIn(limit, resolution.asked, findPath(resolution, limit)).join(" and ") || "a dimension";
  if (request.policies !== undefined) notes.push("asked for by name");
  else if (policy === snapshot.fallback) {
    const isMatched = resolution.candidates.some((one) => one.policy !== policy && one.policy.enforced);
    notes.push(`the default: no enforced policy matches${isMatched ? " every way to read the path" : ""}`);
  } else {
    const parts: string[] = [];
    if (match.endpoint !== undefined) parts.push(`endpoint ${match.endpoint}`);
    if (match.methods.length > 0) parts.push(`method ${match.methods.join(" or ")}`);
    for (const [dimension, values] of Object.entries(match.dimensions))
      parts.push(`${dimension} ${values.join(" or ")}`);
    notes.push(parts.length === 0 ? "matches everything in its domain" : `matches ${parts.join(", ")}`);
  }
  // A given limit that has the same name is not the policy.
  const disabled = request.limits === undefined ? snapshot.exceptions?.disabled(policy.policy.id, epochMs) : undefined;
  if (disabled !== undefined) notes.push(whyDisabled(disabled));
  if (mode === "shadow") notes.push("in shadow mode: reported, never denied");
  if (unlimited) notes.push("unlimited");
  const refusal = resolution.refusals.find((one) => one.policy === policy);
  if (refusal?.block !== undefined) notes.push(whyBlocked(refusal.block));
  else if (refusal?.reason === "deny_list") notes.push("its deny list names this request");
  else if (refusal !== undefined) {
    const limit = policy.limits.find(({ scope }) => scope === refusal.scope);
    notes.push(`${refusal.scope} needs ${limit === undefined ? "a dimension" : lacking(limit)} that the request lacks`);
  }
  if (resolution.exempting.includes(policy)) notes.push("its allow list names this request");
  else if (refusal === undefined && disabled?.mode !== "allow") {
    for (const limit of policy.limits) {
      if (!resolution.limits.some((one) => one.limit === limit)) {
        const tiers = [...limit.tiers.keys()].join(", ");
        notes.push(
          limit.windows.length === 0
            ? `${limit.scope} is skipped: it is for the tiers ${tiers} alone`
            : `${limit.scope} is skipped: the request lacks ${lacking(limit)}`,
        );
      }
    }
  }
  return notes.join("; ");
}

function whyDisabled({ mode, untilMs, reason }: DisabledPolicy): string {
  const effect = mode === "allow" ? "limits and counts nothing" : "decides and counts, and never denies";
  return `disabled until ${new Date(untilMs).toISOString()}, so it ${effect}${because(reason)}`;
}

function whyBlocked({ dimension, value, untilMs, reason }: BlockedSubject): string {
  return `${dimension} ${value} is blocked until ${new Date(untilMs).toISOString()}${because(reason)}`;
}

function because(reason: string | undefined): string {
  return reason === undefined || reason === "" ? "" : `: ${reason}`;
}

function whyItDoesNot(
  policy: CompiledPolicy,
  request: CheckRequest,
  resolution: Resolution,
  epochMs: () => number,
): string {
  if (request.policies !== undefined) return "not asked for by name";
  const dimensions = request.dimensions ?? {};
  const { match, rollout, trial, validFromMs, id, version } = policy.policy;
  switch (whyNot(policy, dimensions, epochMs)) {
    case "method":
      return `wants method ${match.methods.join(" or ")}, not ${rawDimension(dimensions, "method") || "none"}`;
    case "dimension": {
      const { dimension } = policy.conditions.find((condition) => !holds(condition, dimensions))!;
      const wanted = match.dimensions[dimension]!;
      const values = wanted.includes("*") ? "any value" : wanted.slice(0, 5).join(" or ");
      return `wants ${dimension} ${values}, not ${rawDimension(dimensions, dimension) || "none"}`;
    }
    case "valid_from":
      return `valid only from ${new Date(validFromMs!).toISOString()}`;
    case "rollout":
      return `rolled out to ${rollout!.percent} % by ${rollout!.by}: not this one yet`;
    case "trial":
      return `version ${version} is for ${trial!.side === "new" ? `${trial!.percent} %` : "the others"} by ${trial!.by}: not this one`;
    case undefined: {
      const by = appliedIn(resolution).find((one) => one.enforced && one.policy.replaces.includes(id));
      return `replaced by ${by?.policy.id ?? "another policy"}`;
    }
  }
}

const shown = (value: number): string => String(Math.round(value * 1000) / 1000);

/** A window's formula, with the numbers filled in. */
function renderArithmetic({ window, state, remaining }: WindowReading, cost: number): string[] {
  const { capacity, perMs, source } = window;
  if (cost > capacity && window.kind !== "distinct")
    return [`cost ${cost} > ${capacity}, the most this window ever holds: it never fits`];
  switch (window.kind) {
    case "arrival": {
      const aheadMs = state.aheadMs ?? 0;
      const worthMs = (cost * perMs) / source.limit;
      const toleranceMs = (capacity * perMs) / source.limit;
      const afterMs = aheadMs + worthMs;
      const verdict = cost <= remaining ? "fits" : `is ${shown(afterMs - toleranceMs)} ms too early`;
      return [
        `each unit of cost is worth ${shown(perMs / source.limit)} ms; the counter may run ${shown(toleranceMs)} ms ahead`,
        `ahead ${shown(aheadMs)} ms + cost ${cost} worth ${shown(worthMs)} ms = ${shown(afterMs)} ms: ${verdict}`,
      ];
    }
    case "count": {
      const count = state.count ?? 0;
      return [`count ${count} + cost ${cost} = ${count + cost} ${count + cost <= capacity ? "≤" : ">"} ${capacity}`];
    }
    case "sliding": {
      const { current = 0, previous = 0, untilEndMs = 0 } = state;
      const used = current + (previous * untilEndMs) / perMs;
      return [
        `current ${current} + previous ${previous} × ${shown(untilEndMs / perMs)} still covered = ${shown(used)}`,
        `used ${shown(used)} + cost ${cost} = ${shown(used + cost)} ${cost <= remaining ? "≤" : ">"} ${capacity}`,
      ];
    }
    case "log": {
      const used = capacity - remaining;
      return [
        `${state.entries} entries in the last window hold ${used} + cost ${cost} = ${used + cost} ${cost <= remaining ? "≤" : ">"} ${capacity}`,
      ];
    }
    case "distinct":
      return renderDistinct(window, state.values ?? 0);
  }
}

/** `values` is what the decision goes by. */
function renderDistinct({ capacity }: CompiledWindow, values: number): string[] {
  const { error } = describeDistinct("", capacity);
  const room = values < capacity ? "a new one passes" : "no new one passes until the window ends";
  return [
    `${values} distinct values ${values < capacity ? "<" : "≥"} ${capacity}: ${room}; one seen in this window does anyway`,
    error === 0
      ? `up to ${exactValues} values are counted exactly`
      : `estimated on the low side: from ${capacity} to ${Math.floor(capacity * (1 + error))} values pass`,
  ];
}

/**
 * The explanation for people, as `sluice explain` prints it. Names and values from outside cannot control a terminal.
 */
export function renderExplanation(explanation: Explanation): string {
  const { decision } = explanation;
  const lines: string[] = [];
  lines.push(`domain    ${explanation.domain}`);
  if (explanation.endpoint !== undefined) lines.push(`endpoint  ${explanation.endpoint}`);
  lines.push("", "policies");
  for (const { policy, applies, why } of explanation.policies) lines.push(`  ${applies ? "✓" : "·"} ${policy}: ${why}`);
  if (explanation.policies.length === 0) lines.push("  none matches, and there is no default");
  for (const [i, limit] of explanation.limits.entries()) {
    const notes = [`cost ${limit.cost}`];
    if (limit.tier !== undefined) notes.push(`tier ${limit.tier}`);
    if (limit.shadow) notes.push("shadow");
    lines.push("", `limit ${limit.policy} / ${limit.scope} (${notes.join(", ")})`);
    const unnamed = limit.missing.length > 0 ? "none in the request" : "none: one counter is shared by all callers";
    lines.push(`  subject ${limit.subject === "" ? unnamed : limit.subject}`);
    if (limit.missing.length > 0)
      lines.push(`  missing ${limit.missing.join(", ")}: one counter is shared by all requests without it`);
    lines.push(`  counter ${limit.counter}`);
    lines.push(`  counted ${limit.counted}`);
    const answer = decision.limits?.[i];
    if (answer?.reason === "blocked") lines.push(`  blocked for another ${answer.retryAfterMs} ms`);
    for (const { window, remaining, resetAfterMs, arithmetic } of limit.windows) {
      const reset = resetAfterMs === 0 ? "unused" : `as good as new in ${resetAfterMs} ms`;
      lines.push(`  window ${renderWindow(window.source)}: ${remaining} of ${window.capacity} left, ${reset}`);
      for (const step of arithmetic) lines.push(`    ${step}`);
    }
  }
  lines.push("", renderSummary(decision));
  return lines.map(printable).join("\n");
}

/** What is left in the deciding window, and over all if another window or limit has less. */
function renderLeft({ limit = 0, used = 0, remaining = 0 }: Decision): string {
  const left = Math.floor(limit) - used;
  return `${left} of ${limit} left${remaining < left ? `, ${remaining} over all limits` : ""}`;
}

function renderSummary(decision: Decision): string {
  const by =
    decision.policy === undefined
      ? ""
      : ` by ${decision.policy}${decision.scope === undefined ? "" : ` / ${decision.scope}`}`;
  switch (decision.reason) {
    case "within_limits":
      return `ALLOWED: ${renderLeft(decision)}${by}`;
    case "unlimited":
      return `ALLOWED: no limit applies${by}`;
    case "over_limit":
      return `DENIED${by}: ${renderLeft(decision)}, cost ${decision.cost}; passes in ${decision.retryAfterMs} ms`;
    case "blocked":
      return `DENIED${by}: blocked; passes in ${decision.retryAfterMs} ms`;
    case "never_fits":
      return `DENIED${by}: cost ${decision.cost} never fits into ${decision.limit}; waiting does not help`;
    case "deny_list":
      return `DENIED${by}: on the deny list`;
    case "missing_dimension":
      return `DENIED${by}: a dimension is missing`;
    case "degraded":
      return `${decision.allowed ? "ALLOWED" : "DENIED"}${by}: the counters were unavailable (${decision.degraded})`;
  }
}
