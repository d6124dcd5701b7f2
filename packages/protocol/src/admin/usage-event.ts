import { asIs, type BodyOf, boolean, choice, described, integer, listOf, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";

const data = objectOf({
  kind: described(choice(["each", "summary"]), "`each`: one decision. `summary`: all alike within ten seconds."),
  key: described(text, "The subject of the limit; empty if there is none."),
  cost: described(integer, "The cost that was asked for, charged if `allowed`. For a summary, the sum."),
  allowed: boolean,
  ts: described(integer, "Epoch milliseconds of the decision; for a summary, when its ten seconds began."),
  requests: described(integer, "How many decisions the event stands for."),
  reason: text,
  request_id: optional(described(text, "The id that the request brought along. Only for `each`.")),
  policy: optional(described(text, "The policy whose usage it is. Absent: none applied.")),
  version: optional(integer),
  scope: optional(described(text, "The deciding limit, if it is one of the policy.")),
  limit: optional(described(integer, "The most that the deciding window holds.")),
  remaining: optional(integer),
  denied_by: optional(described(text, "The policy that denied, and its limit.")),
  degraded: optional(described(text, "Why the counters were not asked. Absent: they were.")),
  region: optional(text),
  node: described(text, "The node that decided."),
});

/** What a server decided: a CloudEvent, as sinks receive it. */
export const usageEvent = asIs(
  objectOf({
    specversion: text,
    type: text,
    source: text,
    id: described(text, "`source` and `id` together name an event."),
    subject: optional(described(text, "The customer, else `data.key`.")),
    time: described(text, "`data.ts` as RFC 3339."),
    datacontenttype: text,
    data,
  }),
);
export type UsageEventBody = BodyOf<typeof usageEvent>;

/** The events of one node since a cursor. */
export const usageEvents = objectOf({
  events: described(listOf(usageEvent), "Oldest first; empty if there was none in time."),
  next: described(text, "The value of `after` for the next request."),
  missed: described(
    integer,
    "Events since `after`, of all policies and subjects, that were discarded because more came than are kept.",
  ),
  restarted: described(
    boolean,
    "Whether `after` is unknown here, so that events may be missing: the server restarted, another server answered, or the last request was too long ago.",
  ),
});
export type UsageEventsBody = BodyOf<typeof usageEvents>;
