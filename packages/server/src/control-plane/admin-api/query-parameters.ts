import { described, type Shape, text } from "sluice/shape";
import { wholeNumber } from "../../data-plane/transports/http/read-query.ts";
import { maxWhyLength } from "../change.ts";

export const maxVersion: number = Number.MAX_SAFE_INTEGER;

export const yesOrNo: Shape<boolean> = {
  name: "true or false",
  schema: { type: "boolean" },
  read: (value, reading) =>
    value === "true" || value === "false"
      ? value === "true"
      : reading.problem(`must be true or false, but is ${JSON.stringify(value)}`),
};

export const dryRun: Shape<boolean> = described(
  yesOrNo,
  "true: validates the request and returns what would happen, without changing anything",
);

export const why: Shape<string> = described(text({ max: maxWhyLength }), "The reason, for the history");

/** Parameters that select a page of a list. */
export const pageQuery: { readonly limit: Shape<number>; readonly after: Shape<string> } = {
  limit: described(wholeNumber({ min: 1, max: 1_000 }), "The most items to return", { default: 100 }),
  after: described(text({ max: 4_096 }), "`next` of the previous page"),
};
