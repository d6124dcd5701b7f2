import { type BodyOf, boolean, described, integer, listOf, mapOf, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";

/** What is recorded of a denial. */
export const denialFields = {
  at_ms: described(integer, "The newest denial that it stands for, which it describes, in epoch milliseconds."),
  since_ms: described(integer, "The oldest denial that it stands for, in epoch milliseconds."),
  node: text,
  policy: described(text, "Empty if no policy decided, as while the kill switch is closed."),
  version: optional(described(integer, "The version of the policy that decided.")),
  limit: described(text, "The name or the dimensions of the limit; empty if no limit decided."),
  by: described(listOf(text), "The dimensions that the limit counts by."),
  dimensions: described(
    mapOf(text),
    "The dimensions of the request; long values are shortened, and of API keys and tokens a digest is shown.",
  ),
  request_id: optional(described(text, "The id that the request brought along.")),
  reason: text,
  window: described(text, "The window that denied, as policies write it; empty if none did."),
  cost: integer,
  capacity: optional(described(integer, "The most that the window holds.")),
  remaining: optional(described(integer, "The largest cost that the limit would have let through.")),
  retry_after_ms: optional(
    described(integer, "When the request would have passed. Absent: never, or it is not known."),
  ),
  degraded: optional(described(text, "Why the counters were not asked. Absent: they were.")),
  shadow: described(boolean, "Whether it was not carried out, because the policy is in shadow mode."),
  denials: described(integer, "How many denials it stands for."),
  mixed: described(boolean, "Whether it stands for denials of several subjects: `dimensions` has the newest of them."),
};

/** A denial, or several of the same kind that were recorded as one. */
export const denial = objectOf(denialFields);
export type DenialBody = BodyOf<typeof denial>;

export const denialPage = objectOf({
  items: listOf(denial),
  next: optional(described(text, "The value of `after` for the next page. Absent: this is the last page.")),
  denials: described(integer, "How many denials the records of all pages stand for."),
  mixed: described(
    integer,
    "Denials of the same time and policies that were recorded for several subjects together. If you ask for one subject, some of them may be its own.",
  ),
});
export type DenialPageBody = BodyOf<typeof denialPage>;
