import { listOf, oneOrMany } from "../shape/list-shapes.ts";
import { mapOf, objectOf } from "../shape/object-shapes.ts";
import type { Reading } from "../shape/reading.ts";
import { boolean, choice, described, type ReadOf, refine, type Shape } from "../shape/shape.ts";
import { dimensionName, limitName, tierName } from "./names.ts";
import { dayMs, duration } from "./parse-duration.ts";
import { findMisfits, windowShape } from "./parse-window.ts";
import { type Algorithm, algorithms, type Limit, type Window } from "./policy.ts";

export const windowsShape: Shape<readonly Window[]> = described(
  oneOrMany(windowShape, { min: 1, max: 16 }),
  "One or several windows; every one must have room.",
  { examples: [["100/s burst 200", "3000/m", "100k/h"]] },
);

const dimensions = refine(oneOrMany(dimensionName, { max: 16 }), (names, reading) => {
  for (const [index, name] of names.entries())
    if (names.indexOf(name) < index) reading.problem(`names the dimension ${name} twice`, index);
  return names;
});

const limitFields = {
  name: described(
    limitName,
    "Names the limit in answers and in counters. Give one if two limits of a policy have the same dimensions.",
  ),
  by: described(
    dimensions,
    "The dimensions whose values make the subject. Left out: one counter is shared by all callers.",
    { examples: [["tenant"], ["tenant", "user"], ["ip"]] },
  ),
  distinct: described(
    dimensionName,
    "Counts the different values of this dimension in fixed windows, instead of cost: exactly up to 1,536, and within 5 % above.",
    { examples: ["user", "ip"] },
  ),
  algorithm: described(choice(algorithms), "How the windows are counted.", { default: "gcra" }),
  tiers: described(
    mapOf(tierName, objectOf({ windows: windowsShape }), { max: 256 }),
    "Other windows for subjects of a tier. A limit without `windows` applies to these tiers only.",
  ),
  missing: described(
    choice(["share", "skip", "deny"]),
    "What a request does that lacks one of the dimensions: share one counter with all such requests, skip the limit, or be denied.",
    { default: "share" },
  ),
  block_for: described(
    duration({ minMs: 0, maxMs: 366 * dayMs }),
    "After a denial, the subject is denied for this long.",
  ),
  blockable: described(
    boolean,
    "Whether subjects can be blocked by hand, for a time. Limits with block_for always can.",
    { default: false },
  ),
  on_change: described(choice(["keep", "reset"]), "What an edit of the limit does to running counters.", {
    default: "keep",
  }),
};

const withWindows = objectOf({ windows: windowsShape }, limitFields);
const withTiers = objectOf({}, { windows: windowsShape, ...limitFields });
type WrittenLimit = ReadOf<typeof withTiers>;

/** Windows are required, unless tiers have them. */
const writtenLimit: Shape<WrittenLimit> = {
  name: withWindows.name,
  schema: { ...withTiers.schema, anyOf: [{ required: ["windows"] }, { required: ["tiers"] }] },
  read: (value, reading) => (hasTiers(value) ? withTiers : withWindows).read(value, reading),
};

function hasTiers(value: unknown): boolean {
  const tiers = typeof value === "object" && value !== null && "tiers" in value ? value.tiers : undefined;
  return typeof tiers === "object" && tiers !== null && Object.keys(tiers).length > 0;
}

export const limitShape: Shape<Limit> = refine(writtenLimit, (written, reading): Limit => {
  const tiers = written.tiers ?? noTiers;
  const { windows: ownWindows = noWindows } = written;
  const byTier = Object.values(tiers).flatMap(({ windows }) => windows);
  const { distinct } = written;
  const algorithm =
    written.algorithm ?? algorithmFor(ownWindows.length === 0 ? byTier : ownWindows, distinct !== undefined);
  const counted = { algorithm, distinct };
  if (distinct !== undefined && algorithm !== "fixed_window")
    reading.problem(`is ${algorithm}, but distinct values are counted in fixed windows; leave it out`, "algorithm");
  else {
    checkWindowsFit(ownWindows, counted, reading, "windows");
    for (const [tier, { windows }] of Object.entries(tiers))
      checkWindowsFit(windows, counted, reading, "tiers", tier, "windows");
  }
  return {
    ...(written.name === undefined ? undefined : { name: written.name }),
    by: written.by ?? [],
    algorithm,
    ...(distinct === undefined ? undefined : { distinct }),
    windows: ownWindows,
    tiers,
    missing: written.missing ?? "share",
    blockForMs: written.block_for ?? 0,
    blockable: written.blockable ?? false,
    onChange: written.on_change ?? "keep",
  };
});

const maxLimits = 64;

export const limitsShape: Shape<readonly Limit[]> = listOf(limitShape, { max: maxLimits });

export const localLimitsShape: Shape<readonly Limit[]> = listOf(limitShape, { min: 1, max: maxLimits });

const noWindows: readonly Window[] = [];
const noTiers: Limit["tiers"] = Object.freeze(Object.create(null));

/** Calendar days and months need fixed windows; if there are only those, that is what is meant. So do distinct values. */
function algorithmFor(windows: readonly Window[], isDistinct: boolean): Algorithm {
  if (isDistinct) return "fixed_window";
  const kinds = new Set(windows.map((window) => window.per.kind));
  return kinds.has("calendar") && !kinds.has("ms") ? "fixed_window" : "gcra";
}

function checkWindowsFit(
  windows: readonly Window[],
  counted: Pick<Limit, "algorithm" | "distinct">,
  reading: Reading,
  ...part: readonly (string | number)[]
): void {
  const { algorithm } = counted;
  const kinds = new Set(windows.map((window) => window.per.kind));
  if (algorithm !== "fixed_window" && kinds.has("calendar") && kinds.has("ms")) {
    reading.problem(
      `mix calendar windows with others under ${algorithm}; put the calendar windows in a separate limit, or write algorithm: fixed_window`,
      ...part,
    );
    return;
  }
  for (const [index, window] of windows.entries()) {
    for (const { field, message } of findMisfits(window, counted)) reading.problem(message, ...part, index, field);
  }
}
