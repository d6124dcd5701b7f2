import { oneOrMany } from "../shape/list-shapes.ts";
import { mapOf, openObjectOf } from "../shape/object-shapes.ts";
import { described, refine, type Shape, text } from "../shape/shape.ts";
import { suggest } from "../shape/suggest.ts";
import { maxDimensions } from "./bounds.ts";
import { endpointPattern } from "./endpoint-pattern.ts";
import { anything, dimensionName, dimensionValue, domainName } from "./names.ts";
import type { DimensionValues, Match } from "./policy.ts";

/** A match whose domain may still come from the policy or from the document. */
export type WrittenMatch = Omit<Match, "domain"> & { readonly domain?: string };

const method = text({
  max: 32,
  pattern: /^[A-Za-z][A-Za-z_-]*$/,
  form: "an HTTP method such as GET (leave it out to match any)",
});

const values = oneOrMany(dimensionValue, { min: 1 });

const listed = refine(dimensionValue, (value, reading) =>
  value === anything ? reading.problem("is *, which lists do not know; name the values one by one") : value,
);

/** Allow and deny lists: values by dimension. */
export const valueLists: Shape<DimensionValues> = mapOf(dimensionName, oneOrMany(listed, { min: 1 }), {
  max: maxDimensions,
});

const known = {
  endpoint: described(
    endpointPattern,
    "Path pattern: literal segments, `{name}` or `*` for one segment, `**` at the end for the rest.",
    { examples: ["/v1/orders/**", "/v1/orders/{order}/items"] },
  ),
  method: described(oneOrMany(method, { min: 1, max: 32 }), "One or several methods. GET also matches HEAD."),
  domain: described(domainName, "The family of policies that requests ask."),
};

const openMatch = openObjectOf(known, { key: dimensionName, value: values, max: maxDimensions });

export const matchShape: Shape<WrittenMatch> = refine(openMatch, (match, reading): WrittenMatch => {
  for (const dimension of Object.keys(match.others)) {
    // If it were read as a dimension, a misspelt key would make a policy that silently matches nothing.
    const meant = suggest(dimension, Object.keys(known));
    if (meant !== undefined)
      reading.keyProblem(dimension, `is too like ${meant} to be a dimension; did you mean ${meant}?`);
  }
  const { endpoint, domain } = match.known;
  return {
    ...(domain === undefined ? undefined : { domain }),
    ...(endpoint === undefined ? undefined : { endpoint }),
    methods: [...new Set((match.known.method ?? []).map((name) => name.toUpperCase()))],
    dimensions: match.others,
  };
});

export const noValues: DimensionValues = Object.freeze(Object.create(null));
