import {
  type BodyOf,
  type BodyShape,
  choice,
  constant,
  described,
  fromView,
  integer,
  listOf,
  text,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";

/**
 * `counters_unavailable`: a server that holds counters is not connected, or its breaker is open, so `on_failure` answers for its
 * counters. `counters_slow`: one takes longer than two seconds. `policy_store`: the policies in force may not be the newest.
 */
export const degradations = ["counters_unavailable", "counters_slow", "policy_store"] as const;
export type Degradation = (typeof degradations)[number];

export const live = objectOf({ status: constant("live") });
export type LiveBody = BodyOf<typeof live>;

const wholeMs: BodyShape<number, number> = fromView(integer, (ms: number) => Math.round(ms));

/** Leases that a server holds. */
export const leases = described(
  objectOf({ held: integer, tokens: integer, stale: integer, stale_for_ms: optional(wholeMs) }),
  "Leases from counter servers: held, units of cost left to spend, and how many are beyond their time.",
);
export type LeasesBody = BodyOf<typeof leases>;

/** Whether a server is ready for requests. Details are for callers with the permission `read`. */
export const ready = objectOf({
  status: described(
    choice(["ready", "degraded", "unready", "stopping"]),
    "ready and degraded: send requests here. unready: only with ?strict, while counters cannot be reached.",
  ),
  code: optional(text),
  degraded: optional(
    described(listOf(choice(degradations)), "Problems while requests are still answered. Absent: none."),
  ),
  detail: optional(text),
  config: described(
    choice(["current", "stale"]),
    "stale: the policies on disk were refused, and the last good ones are in force.",
  ),
  generation: integer,
  policies: integer,
  problem_count: optional(integer),
  problems: optional(listOf(text)),
  counters: optional(
    described(
      objectOf({
        shards: integer,
        leases: optional(leases),
        away: optional(listOf(objectOf({ shard: text, cell: optional(text), why: text }))),
      }),
      "The servers that hold counters: how many there are, and which are unavailable.",
    ),
  ),
});
export type ReadyBody = BodyOf<typeof ready>;
