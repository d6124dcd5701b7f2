import { described, type Shape, text } from "sluice";
import { wholeNumber } from "../../data-plane/transports/http/read-query.ts";

/** Every change of anything, whatever its number. */
export const maxVersion: number = Number.MAX_SAFE_INTEGER;

const yesOrNo: Shape<boolean> = {
  name: "true or false",
  schema: { type: "boolean" },
  read: (value, reading) =>
    value === "true" || value === "false"
      ? value === "true"
      : reading.problem(`must be true or false, but is ${JSON.stringify(value)}`),
};

export const dryRun: Shape<boolean> = described(
  yesOrNo,
  "true: answers as if it were done, with every refusal there would be, and does nothing",
);

export const maxWhyLength = 1_000;
export const why: Shape<string> = described(text({ max: maxWhyLength }), "Why it is wanted, for the history");

/** Which part of a long list. */
export const pageQuery: { readonly limit: Shape<number>; readonly after: Shape<string> } = {
  limit: described(wholeNumber({ min: 1, max: 1_000 }), "Most items of one answer", { default: 100 }),
  after: described(text({ max: 4_096 }), "`next` of the answer before"),
};
