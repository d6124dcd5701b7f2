import { byType, oneOrMany } from "../shape/list-shapes.ts";
import { mapOf, type ObjectOf, objectOf } from "../shape/object-shapes.ts";
import type { Reading } from "../shape/reading.ts";
import { boolean, choice, described, integer, number, refine, type Shape, text } from "../shape/shape.ts";
import { hasMisspelt } from "../shape/suggest.ts";
import { maxCost } from "./bounds.ts";
import { defaultMaxOvershoot, defaultPolicyId } from "./default-policy.ts";
import { defaultLocalShare } from "./divide-window.ts";
import { endpointPattern } from "./endpoint-pattern.ts";
import { limitsShape, localLimitsShape } from "./limit-shape.ts";
import { matchShape, noValues, valueLists, type WrittenMatch } from "./match-shape.ts";
import { anything, dimensionName, domainName, policyId } from "./names.ts";
import { duration } from "./parse-duration.ts";
import { instant } from "./parse-instant.ts";
import { counterModes, eventModes, type Limit, type Policy } from "./policy.ts";
import { percentText, shareShape } from "./share-shape.ts";

/** A policy whose domain may still come from the document. */
export type WrittenPolicy = Omit<Policy, "match"> & { readonly match: WrittenMatch };

const costNumber = integer({ min: 1, max: maxCost });

const cost = byType({
  number: refine(costNumber, (one) => [{ endpoint: "/**", cost: one }]),
  object: refine(mapOf(endpointPattern, costNumber), (map) =>
    Object.entries(map).map(([endpoint, one]) => ({ endpoint, cost: one })),
  ),
});

const localShareSchema = { type: "number", exclusiveMinimum: 0, maximum: 1 };

const localShare = refine(
  { ...shareShape, schema: { anyOf: [localShareSchema, percentText.schema] } },
  (share, reading) =>
    share > 0 ? share : reading.problem("must be more than 0; to let nothing through, write on_failure: closed"),
);

const percent = refine(byType({ number: number({ min: 0, max: 100 }), text: percentText }), (share, reading) =>
  share <= 100 ? share : reading.problem(`must be at most 100%, but is ${share}%`),
);

/** Fields that every policy may have, the default one included. */
const commonFields = {
  version: described(integer({ min: 1 }), "Counts up with every change.", { default: 1 }),
  description: described(text({ max: 4096 }), "What the policy is for."),
  owner: described(text({ max: 256 }), "Whom to ask about it."),
  limits: described(limitsShape, "The limits; a request must have room in every one."),
  unlimited: described(
    boolean,
    "Matching requests are not limited by this policy; with `replaces` they are exempt from others too.",
  ),
  mode: described(choice(["enforce", "shadow"]), "`shadow` decides and reports, and never denies.", {
    default: "enforce",
  }),
  allow: described(valueLists, "Requests with one of these values are not limited. CIDR ranges work for `ip`.", {
    examples: [{ ip: ["10.0.0.0/8"], user: "ops" }],
  }),
  deny: described(valueLists, "Requests with one of these values are denied. Goes before `allow`."),
  cost: described(cost, "What a request takes that does not say: by endpoint pattern, or one number for all.", {
    examples: [{ "/v1/orders/export": 10 }],
  }),
  on_failure: described(
    choice(["open", "closed", "local"]),
    "What happens when counters are unavailable: allow, deny, or count on this node alone.",
    { default: "open" },
  ),
  local_share: described(
    localShare,
    "With `on_failure: local`, the share of every limit that this node lets through on its own: 0.5 or 50%.",
    { default: defaultLocalShare, examples: [0.25, "25%"] },
  ),
  local_limits: described(
    localLimitsShape,
    "With `on_failure: local`, the limits that stand in for `limits` while counters are unavailable, at full size.",
    { examples: [[{ by: ["ip"], windows: ["20/m"] }]] },
  ),
  deadline: described(
    duration({ maxMs: 60_000 }),
    "How long remote counters may take to answer before `on_failure` does. Left out: 25ms.",
  ),
  counters: described(
    choice(counterModes),
    "How checks are decided: `exact`, each where the counters are; `leased`, on each node, by tokens that it took in advance; `auto`, by leases if a counter is hot; `strong`, in a SQL database that loses nothing, for the few policies that are worth milliseconds.",
    { default: "auto" },
  ),
  max_overshoot: described(
    shareShape,
    "By how much of their smallest window's limit leases may exceed what the limits allow, at most: 0.01 or 1%. 0: every check is decided exactly.",
    { default: defaultMaxOvershoot, examples: [0.001, "5%"] },
  ),
  warn_at: described(shareShape, "Share of a limit from which its state is `warning`: 0.8 or 80%.", { default: 0.8 }),
  count_denials: described(
    boolean,
    "Whether the servers that hold the counters also count denials in a row, for all nodes. Such a policy is never leased.",
    { default: false },
  ),
  events: described(
    choice(eventModes),
    "Usage events that a server sends of these decisions, if it has somewhere to send them: `each`, one for every decision, such as for billing; `summary`, one for all alike within ten seconds; `none`.",
    { default: "summary" },
  ),
};

const policyFields = objectOf(
  { id: described(policyId, "Names the policy, in answers and in counters. It stays the same through edits.") },
  {
    domain: described(domainName, "The family of policies that requests ask. May also stand in `match`."),
    match: described(matchShape, "Which requests the policy is for. Left out: all of its domain."),
    ...commonFields,
    replaces: described(
      oneOrMany(policyId, { min: 1, max: 1_000 }),
      "Ids of policies that do not apply if this one does.",
    ),
    valid_from: described(instant, "The policy is not applied before this moment."),
    rollout: described(
      objectOf({
        percent: described(percent, "Share of subjects, 0 to 100."),
        by: described(dimensionName, "The dimension by whose value a subject is in or out."),
      }),
      "Applies the policy to a share of subjects, always the same ones.",
    ),
  },
);

export const policyShape: Shape<WrittenPolicy> = refine(policyFields, (written, reading, raw): WrittenPolicy => {
  const match = written.match ?? { methods: [], dimensions: noValues };
  const domain = match.domain ?? written.domain;
  if (written.domain !== undefined && match.domain !== undefined && written.domain !== match.domain)
    reading.problem(
      `is ${match.domain}, but the policy's own domain is ${written.domain}; write it once`,
      "match",
      "domain",
    );
  if (written.replaces?.includes(written.id))
    reading.problem("names the policy itself; name the ones it replaces", "replaces");
  return {
    id: written.id,
    match: domain === undefined ? match : { ...match, domain },
    ...finishCommon(written, reading, raw),
    replaces: written.replaces ?? [],
    ...(written.valid_from === undefined ? undefined : { validFromMs: written.valid_from }),
    ...(written.rollout === undefined ? undefined : { rollout: written.rollout }),
  };
});

/** The policy for requests that match no other, or `none`. */
export const fallbackShape: Shape<Policy | "none"> = byType({
  object: refine(
    objectOf({}, commonFields),
    (written, reading, raw): Policy => ({
      id: defaultPolicyId,
      match: { domain: anything, methods: [], dimensions: noValues },
      replaces: [],
      ...finishCommon(written, reading, raw),
    }),
    "a policy without id and match",
  ),
  text: refine(choice(["none", "unlimited"]), () => "none" as const, "the word none"),
});

type Common = ObjectOf<Readonly<Record<never, never>>, typeof commonFields>;

function finishCommon(written: Common, reading: Reading, raw: unknown): Omit<Policy, "id" | "match" | "replaces"> {
  checkLimits(written, reading, raw as object);
  checkLocal(written, reading, raw as object);
  checkCounters(written, reading);
  const { counters = "auto" } = written;
  return {
    version: written.version ?? 1,
    ...(written.description === undefined ? undefined : { description: written.description }),
    ...(written.owner === undefined ? undefined : { owner: written.owner }),
    limits: written.limits ?? [],
    unlimited: written.unlimited ?? false,
    mode: written.mode ?? "enforce",
    allow: written.allow ?? noValues,
    deny: written.deny ?? noValues,
    cost: written.cost ?? [],
    onFailure: written.on_failure ?? "open",
    onFailureChosen: written.on_failure !== undefined,
    ...(written.local_share === undefined ? undefined : { localShare: written.local_share }),
    ...(written.local_limits === undefined ? undefined : { localLimits: written.local_limits }),
    ...(written.deadline === undefined ? undefined : { deadlineMs: written.deadline }),
    warnAt: written.warn_at ?? 0.8,
    counters,
    // Exact counting exceeds nothing.
    maxOvershoot: written.max_overshoot ?? (counters === "exact" || counters === "strong" ? 0 : defaultMaxOvershoot),
    countDenials: written.count_denials ?? false,
    events: written.events ?? "summary",
  };
}

function checkLimits(
  written: Common,
  reading: Reading,
  raw: { readonly limits?: unknown; readonly deny?: unknown },
): void {
  const none = raw.limits === undefined || (Array.isArray(raw.limits) && raw.limits.length === 0);
  if (written.unlimited === true && !none)
    reading.problem("goes with no limits; leave out either unlimited or limits", "unlimited");
  if (none && written.unlimited !== true && raw.deny === undefined && !hasMisspelt(raw, "limits"))
    reading.problem("is missing; write a list of limits, or unlimited: true, or a deny list", "limits");
  checkNames(written.limits ?? [], reading, "limits");
  checkNames(written.local_limits ?? [], reading, "local_limits");
}

function checkNames(limits: readonly Limit[], reading: Reading, key: string): void {
  const names = new Set<string>();
  for (const [index, { name }] of limits.entries()) {
    if (name !== undefined && names.has(name))
      reading.problem(`is ${name}, as another limit of this policy; give each its own`, key, index, "name");
    if (name !== undefined) names.add(name);
  }
}

/** Settings for `on_failure: local` require it, and limits to stand in for. */
function checkLocal(
  written: Common,
  reading: Reading,
  raw: { readonly on_failure?: unknown; readonly limits?: unknown; readonly deny?: unknown },
): void {
  // An unreadable fail mode was reported already.
  const mode =
    written.on_failure ?? (raw.on_failure === undefined && !hasMisspelt(raw, "on_failure") ? "open" : "local");
  for (const key of ["local_share", "local_limits"] as const) {
    if (written[key] === undefined || mode === "local") continue;
    reading.problem(
      `goes with on_failure: local, and on_failure is ${mode}; write on_failure: local, or leave it out`,
      key,
    );
  }
  const limitless = raw.limits === undefined && (written.unlimited === true || raw.deny !== undefined);
  if (written.local_limits !== undefined && limitless)
    reading.problem("stands in for limits, but the policy has none; write limits, or leave it out", "local_limits");
}

/** Leased units may be spent late: if nothing may be exceeded, there are no leases. A database keeps no distinct values. */
function checkCounters(written: Common, reading: Reading): void {
  if (written.counters === "leased" && written.max_overshoot === 0)
    reading.problem(
      "is 0, so that nothing may be leased, and counters is leased; write a share above 0, such as 1%, or counters: exact",
      "max_overshoot",
    );
  if (written.counters !== "strong") return;
  for (const [index, { distinct }] of (written.limits ?? []).entries())
    if (distinct !== undefined)
      reading.problem(
        `is ${distinct}, but counters is strong, and a database cannot count distinct values; put the limit in another policy`,
        "limits",
        index,
        "distinct",
      );
}
