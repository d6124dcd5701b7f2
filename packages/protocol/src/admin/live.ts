import {
  type BodyOf,
  boolean,
  choice,
  described,
  epochMs,
  integer,
  listOf,
  mapOf,
  number,
  text,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { denialFields } from "./denial.ts";

/** What can be watched. Also the names of the events, besides `end`. */
export const liveTopics = ["overview", "decisions", "changes"] as const;
export type LiveTopic = (typeof liveTopics)[number];

const nodeName = objectOf({ id: text, name: text });

const killSwitch = objectOf({
  mode: choice(["open", "closed"]),
  until_ms: epochMs,
  reason: text,
  author: text,
});

/** The policy store, as the node that answers sees it. */
const store = objectOf({
  state: described(
    choice(["current", "stale", "away", "expired"]),
    "stale: its newest generation cannot be applied. away: it is unavailable, and the last good policies decide. " +
      "expired: the same, for longer than the grace.",
  ),
  generation: described(integer, "The generation that this node decides by."),
  newest_generation: integer,
  reason: optional(text),
});

/** The event `overview`, once a second: the last second of the node that answers, with all its workers. */
export const liveOverview = objectOf({
  at_ms: epochMs,
  seconds: described(number, "How long the period was that these are the rates of."),
  node: nodeName,
  workers: described(
    objectOf({ heard: integer, silent: integer }),
    "The processes behind the same ports: how many these are the sums of, and how many did not answer in time.",
  ),
  per_second: objectOf({ decided: number, allowed: number, denied: number, degraded: number, shadow_denied: number }),
  denied_by: described(mapOf(number), "Denials per second by reason; a reason without any is left out."),
  latency_ms: optional(
    described(
      objectOf({ p50: number, p99: number }),
      "How long decisions took in the server, from a histogram. Absent: there were none in this period.",
    ),
  ),
  in_flight: described(integer, "Checks that wait for counters now."),
  status: choice(["ready", "degraded", "stopping"]),
  degraded: described(listOf(text), "Why it is degraded; empty if it is not."),
  store: optional(store),
  kill_switch: optional(described(killSwitch, "Absent: it is off.")),
});
export type LiveOverviewBody = BodyOf<typeof liveOverview>;

const { denials: _, ...decisionFields } = denialFields;

/** A decision of the live tail, or several alike, described by one of them. */
export const liveDecision = objectOf({
  ...decisionFields,
  shadow: described(boolean, "Whether a policy in shadow mode would have denied it."),
  allowed: boolean,
  stands_for: described(integer, "How many decisions this one was drawn from, itself included."),
});
export type LiveDecisionBody = BodyOf<typeof liveDecision>;

/** The event `decisions`, twice a second if there is something to show. */
export const liveDecisions = objectOf({
  at_ms: epochMs,
  since_ms: described(integer, "When the period began, in epoch milliseconds."),
  node: nodeName,
  workers: objectOf({ heard: integer, silent: integer }),
  matched: described(integer, "Decisions of the period that match the filters: the sum of all `stands_for`."),
  items: described(listOf(liveDecision), "At most 10, or one of each worker if there are more; oldest first."),
});
export type LiveDecisionsBody = BodyOf<typeof liveDecisions>;

const change = objectOf({
  at_ms: epochMs,
  actor: text,
  action: text,
  kind: text,
  target: text,
  generation: optional(integer),
});

/** The event `changes`: at the beginning, and whenever something of it differs. */
export const liveChanges = objectOf({
  at_ms: epochMs,
  store: optional(store),
  kill_switch: optional(described(killSwitch, "Absent: it is off.")),
  nodes: listOf(objectOf({ id: text, name: text, alive: boolean, generation: integer, current: boolean })),
  changes: described(
    listOf(change),
    "What was changed since the last event, newest first, as the audit has it; at most 50. Empty in the first event.",
  ),
  more: described(boolean, "Whether there were more changes than that: read everything again."),
});
export type LiveChangesBody = BodyOf<typeof liveChanges>;

/** The event `end`, after which the server closes the stream. */
export const liveEnd = objectOf({
  reason: described(
    choice(["session_ended", "server_stopping", "too_slow"]),
    "session_ended: signed out, or the token expired or was revoked. too_slow: the client did not read.",
  ),
});
export type LiveEndBody = BodyOf<typeof liveEnd>;
