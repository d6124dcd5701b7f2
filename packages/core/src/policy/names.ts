/**
 * How things in a policy file may be named. No name contains `|` or `,`, which separate the parts of a counter's key.
 */

import { type Shape, text } from "../shape/shape.ts";
import { maxDimensionLength } from "./bounds.ts";

export const policyId: Shape<string> = text({
  max: 128,
  pattern: /^[A-Za-z0-9._:/@-]+$/,
  form: "1 to 128 letters, digits or . _ : / @ -",
});

/** Without a colon, so that no name looks like the dimensions and algorithm that stand for an unnamed limit. */
export const limitName: Shape<string> = text({
  max: 128,
  pattern: /^[A-Za-z0-9._-]+$/,
  form: "1 to 128 letters, digits or . _ -",
});

export const windowName: Shape<string> = text({
  max: 128,
  pattern: /^[A-Za-z0-9][A-Za-z0-9 ._:/@-]*$/,
  form: "1 to 128 letters, digits, spaces or . _ : / @ -",
});

export const tierName: Shape<string> = windowName;

export const dimensionName: Shape<string> = text({
  max: 64,
  pattern: /^[A-Za-z_][A-Za-z0-9_.-]*$/,
  form: "the name of a dimension: a letter, then letters, digits or . _ -",
});

export const dimensionValue: Shape<string> = text({ max: maxDimensionLength });

export const domainName: Shape<string> = text({
  max: 255,
  pattern: /^[^\s|*]+$/,
  form: "the name of one domain, without spaces, * or |",
});

/** In a match, any value of a dimension; also the domain of the default policy, which is any domain. */
export const anything = "*";
