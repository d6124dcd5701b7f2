import { listOf } from "../shape/list-shapes.ts";
import { objectOf, openObjectOf } from "../shape/object-shapes.ts";
import { invalid } from "../shape/reading.ts";
import { described, refine, type Shape } from "../shape/shape.ts";
import { suggest } from "../shape/suggest.ts";
import { windowsShape } from "./limit-shape.ts";
import { dimensionName, dimensionValue, limitName, policyId, tierName } from "./names.ts";
import { instant } from "./parse-instant.ts";
import type { SubjectEntry, SubjectLimit } from "./policy.ts";

const subjectLimit: Shape<SubjectLimit> = refine(
  objectOf(
    {
      policy: described(policyId, "Id of the policy."),
      windows: windowsShape,
    },
    {
      limit: described(limitName, "Name of the limit. Left out: every limit that is by this subject's dimension."),
      until: described(instant, "When these windows expire."),
    },
  ),
  ({ policy, windows, limit, until }): SubjectLimit => ({
    policy,
    ...(limit === undefined ? undefined : { limit }),
    windows,
    ...(until === undefined ? undefined : { untilMs: until }),
  }),
);

const known = {
  tier: described(tierName, "The subject's tier, which limits may have other windows for."),
  limits: described(listOf(subjectLimit, { min: 1, max: 64 }), "Windows for this subject alone."),
};

const writtenSubject = openObjectOf(known, {
  key: dimensionName,
  value: described(dimensionValue, "Who: the dimension and its value."),
  max: 32,
});

/** `{ user: u1, tier: premium }`: one dimension with its value, and what is particular about it. */
export const subjectShape: Shape<SubjectEntry> = refine(writtenSubject, (written, reading, raw) => {
  const keys = Object.keys(raw as object);
  const dimensions = keys.filter((key) => !Object.hasOwn(known, key));
  if (dimensions.length > 1) {
    const misspelt = dimensions.find((key) => suggest(key, Object.keys(known)) !== undefined);
    if (misspelt !== undefined)
      return reading.keyProblem(
        misspelt,
        `is a second dimension; did you mean ${suggest(misspelt, Object.keys(known))}?`,
      );
    return reading.problem(`must name one subject, but names ${dimensions.join(" and ")}; write an entry for each`);
  }
  if (dimensions.length === 0) reading.problem("must name a subject by a dimension and its value, such as user: u1");
  if (keys.length === dimensions.length) reading.problem("must have a tier, or limits");
  const [subject] = Object.entries(written.others);
  if (subject === undefined) return invalid;
  const { tier, limits } = written.known;
  return {
    dimension: subject[0],
    value: subject[1],
    ...(tier === undefined ? undefined : { tier }),
    limits: limits ?? [],
  };
});
