import { maxOverrideMs, moment } from "@sluice/protocol/admin";
import { maxDimensionLength, maxDimensions } from "sluice/internal";
import { described, integer, listOf, mapOf, objectOf, refine, type Shape, text } from "sluice/shape";
import { changeFields } from "./policy-shapes.ts";

const name = text({ max: 256 });

export interface SubjectLimitBody {
  readonly policy: string;
  readonly limit?: string;
  readonly windows: readonly unknown[];
  readonly why?: string;
  readonly expected_version?: number;
}

export interface OverrideBody extends SubjectLimitBody {
  readonly until_ms?: number;
  readonly for_ms?: number;
}

/** Windows of a limit, which are parsed together with the policy that they are for. */
export const windows: Shape<readonly unknown[]> = described(
  listOf(
    {
      name: "a window",
      schema: { anyOf: [{ type: "string" }, { type: "object" }], examples: ["100/s burst 200"] },
      read: (value: unknown) => value,
    } satisfies Shape<unknown>,
    { min: 1, max: 16 },
  ),
  "As in a policy file.",
);

const limitFields = {
  policy: described(name, "The policy whose limit is replaced for this subject."),
  windows,
};

const limitOptions = {
  limit: described(name, "The limit's name. Default: every limit of the policy that counts by this dimension."),
  ...changeFields,
};

/** The body of a custom limit. */
export const subjectLimitShape: Shape<SubjectLimitBody> = objectOf(limitFields, limitOptions);

/** The body of an override, which ends. */
export const overrideShape: Shape<OverrideBody> = refine(
  objectOf(limitFields, {
    ...limitOptions,
    until_ms: described(moment, "When it ends."),
    for_ms: described(
      integer({ min: 1_000, max: maxOverrideMs }),
      "How long it lasts from now. An alternative to until_ms.",
    ),
  }),
  (body, reading) => {
    const { until_ms: untilMs, for_ms: forMs } = body;
    if (untilMs !== undefined && forMs !== undefined)
      return reading.problem("cannot be combined with until_ms; send one of the two", "for_ms");
    if (untilMs === undefined && forMs === undefined)
      return reading.problem(
        "is missing, and so is for_ms: an override ends. For a limit without an end, use PUT …/limits",
        "until_ms",
      );
    return body;
  },
);

export interface BlockBody {
  readonly policies?: readonly string[];
  readonly until_ms?: number;
  readonly for_ms?: number;
  readonly why?: string;
  readonly expected_version?: number;
}

/** The body of a block, which ends. */
export const blockShape: Shape<BlockBody> = refine(
  objectOf(
    {},
    {
      policies: described(
        listOf(name, { min: 1, max: 100 }),
        "Only these policies deny. Default: the subject is denied everything.",
      ),
      until_ms: described(moment, "When it ends."),
      for_ms: described(
        integer({ min: 1_000, max: maxOverrideMs }),
        "How long it lasts from now. An alternative to until_ms.",
      ),
      ...changeFields,
      why: described(changeFields.why, "The reason. Required, here or in the query."),
    },
  ),
  (body, reading) => {
    const { until_ms: untilMs, for_ms: forMs } = body;
    if (untilMs !== undefined && forMs !== undefined)
      return reading.problem("cannot be combined with until_ms; send one of the two", "for_ms");
    if (untilMs === undefined && forMs === undefined)
      return reading.problem("is missing, and so is for_ms: a block ends", "until_ms");
    return body;
  },
);

/** The body of a tier. */
export const tierShape: Shape<{ readonly tier: string; readonly why?: string; readonly expected_version?: number }> =
  objectOf({ tier: described(text({ max: 128 }), "A tier that policies have windows for.") }, changeFields);

export interface ResetBody {
  readonly policy?: string;
  readonly dimensions?: Readonly<Record<string, string>>;
  readonly also_by?: Readonly<Record<string, string>>;
  readonly why?: string;
}

const dimensionValues = mapOf(text({ max: 128 }), text({ min: 0, max: maxDimensionLength }), { max: maxDimensions });

/** The body of a reset. */
export const resetShape: Shape<ResetBody> = refine(
  objectOf(
    {},
    {
      policy: described(name, "Only this policy's counters."),
      also_by: described(
        dimensionValues,
        "Values of further dimensions, for limits that count by several. Without them, those limits are listed in `skipped`.",
      ),
      dimensions: described(
        dimensionValues,
        "Only the counters that a request like this one would use. Default: those of every limit that counts by this dimension.",
      ),
      why: changeFields.why,
    },
  ),
  (body, reading) =>
    body.also_by !== undefined && body.dimensions !== undefined
      ? reading.problem("cannot be combined with dimensions; send one of the two", "also_by")
      : body,
);
