import { dayMs } from "../policy/parse-duration.ts";
import { perShape } from "../policy/parse-window.ts";
import { type Algorithm, algorithms, type FailMode, type Per } from "../policy/policy.ts";
import { listOf } from "../shape/list-shapes.ts";
import { objectOf } from "../shape/object-shapes.ts";
import { describeValue, invalid } from "../shape/reading.ts";
import { choice, integer, number, type Shape, text } from "../shape/shape.ts";
import { hasMisspelt } from "../shape/suggest.ts";

/** Settings that may stand in a limit, next to it, around it or at the top of the file; the nearest counts. */
export interface EnvoyDefaults {
  readonly algorithm?: Algorithm;
  readonly on_failure?: FailMode;
  readonly charge_denied?: boolean;
}

/** A `rate_limit` as it is written. */
export interface WrittenEnvoyLimit extends EnvoyDefaults {
  readonly unit?: Per;
  readonly per?: Per;
  readonly requests_per_unit?: number;
  readonly unlimited?: boolean;
  readonly name?: string;
  readonly replaces?: readonly { readonly name: string }[];
  readonly burst?: number;
}

const unitsMs = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: dayMs,
  week: 7 * dayMs,
  month: 30 * dayMs,
  year: 365 * dayMs,
} as const;

const unitWords = Object.keys(unitsMs) as (keyof typeof unitsMs)[];
const unitWord = choice(unitWords);

const unit: Shape<Per> = {
  name: unitWord.name,
  schema: unitWord.schema,
  read(value, reading) {
    const word = unitWords.find((one) => typeof value === "string" && one === value.toLowerCase());
    if (word !== undefined) return { kind: "ms", ms: unitsMs[word] };
    const isDuration = typeof value === "string" && /^\d/.test(value);
    if (isDuration) return reading.problem(`must be ${unitWord.name}; for other lengths write per: ${value}`);
    return unitWord.read(value, reading) === invalid ? invalid : { kind: "never" };
  },
};

/** Includes the words of YAML 1.1, which Envoy's own server reads its files by. */
export const envoyBoolean: Shape<boolean> = {
  name: "true or false",
  schema: { type: "boolean" },
  read(value, reading) {
    if (typeof value === "boolean") return value;
    if (typeof value === "string" && /^(yes|on|y)$/i.test(value)) return true;
    if (typeof value === "string" && /^(no|off|n)$/i.test(value)) return false;
    return reading.problem(`must be true or false, but is ${describeValue(value)}`);
  },
};

/** Accepts anything without reading it. */
export const whatever: Shape<true> = { name: "anything", schema: {}, read: () => true };

export const envoyDefaults: { readonly [K in keyof EnvoyDefaults]-?: Shape<NonNullable<EnvoyDefaults[K]>> } = {
  algorithm: choice(algorithms),
  on_failure: choice(["open", "closed", "local"]),
  charge_denied: envoyBoolean,
};

const name = text({ max: 256 });

const limitFields = {
  unit,
  requests_per_unit: integer({ min: 0, max: 2 ** 32 - 1 }),
  unlimited: envoyBoolean,
  name,
  replaces: listOf(objectOf({ name }), { max: 1_000 }),
  metadata: whatever,
  per: perShape,
  burst: number({ min: 1 }),
  ...envoyDefaults,
};

/** Keys that are legal in this format, but not in a limit. */
const elsewhere: Readonly<Record<string, string>> = {
  shadow_mode: "next to the limit, in its descriptor",
  quota_mode: "next to the limit, in its descriptor",
  detailed_metric: "next to the limit, in its descriptor",
  value_to_metric: "next to the limit, in its descriptor",
  share_threshold: "next to the limit, in its descriptor",
  descriptors: "next to the limit, in its descriptor",
};

const fields = objectOf({}, limitFields);

/** One limit, key by key; how they combine is checked once their surroundings are known. */
export const envoyLimitShape: Shape<WrittenEnvoyLimit> = {
  name: "a limit, such as { unit: minute, requests_per_unit: 10 }",
  schema: fields.schema,
  read(value, reading) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return fields.read(value, reading);
    const here: Record<string, unknown> = Object.create(null);
    for (const [key, one] of Object.entries(value)) {
      if (Object.hasOwn(elsewhere, key)) reading.keyProblem(key, `does not belong here; write it ${elsewhere[key]}`);
      // A key without a value counts as absent.
      else if (one !== null) here[key] = one;
    }
    const written = fields.read(here, reading);
    if (written === invalid || written.unlimited === true) return written;
    if (!("unit" in here || "per" in here || hasMisspelt(here, "unit")))
      reading.problem("is missing; write unit: minute, or per: 15m for any other length", "unit");
    if (!("requests_per_unit" in here || hasMisspelt(here, "requests_per_unit")))
      reading.problem("is missing; write how many requests a unit has", "requests_per_unit");
    return written;
  },
};
