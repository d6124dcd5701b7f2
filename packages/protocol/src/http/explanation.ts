import type { CheckRequest, Window } from "sluice";
import { type BodyOf, boolean, described, fromView, listOf, mapOf, number, plain, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { decision } from "./decision.ts";
import { window } from "./window.ts";

const explainedLimit = objectOf({
  policy: text,
  scope: text,
  subject: text,
  counter: text,
  cost: number,
  tier: optional(text),
  missing: described(
    listOf(text),
    "Dimensions of the limit that the request does not carry. All requests that lack them share this counter.",
  ),
  shadow: boolean,
  counted: described(text, "How the limit is counted: exactly, or by leases."),
  allowance: described(number, "The most by which leases may exceed the limit. 0: it is never leased."),
  windows: listOf(
    objectOf({
      window: fromView(window, ({ source }: { readonly source: Window }) => source),
      remaining: number,
      reset_after_ms: number,
      state: mapOf(number),
      arithmetic: listOf(text),
    }),
  ),
});

/** How a check would be decided. */
export const explanation = objectOf({
  request: plain<CheckRequest>({ type: "object" }),
  domain: text,
  endpoint: optional(text),
  policies: listOf(objectOf({ policy: text, applies: boolean, why: text })),
  limits: listOf(explainedLimit),
  decision,
});
export type ExplanationBody = BodyOf<typeof explanation>;
