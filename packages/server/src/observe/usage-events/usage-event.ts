import type { DecisionReason, DegradedReason } from "sluice";

/** The CloudEvents type of every usage event. A change that breaks readers gets another. */
export const usageEventType = "io.sluice.usage.v1";

/**
 * What was decided, for a ledger outside of Sluice: a CloudEvent (1.0). Events are sent at least once: `source` and `id` together
 * name an event, and a reader drops one that it has seen.
 */
export interface UsageEvent {
  readonly specversion: "1.0";
  readonly type: typeof usageEventType;
  /** The same for all nodes of a fleet, so that a request id is deduplicated whichever node decided. */
  readonly source: string;
  /** That of the request if it was charged, else one that is unique across restarts. For a summary a hash of what it is of. */
  readonly id: string;
  /** The customer: the value of one dimension, else `data.key`. Undefined if the request names neither. */
  readonly subject?: string | undefined;
  /** `data.ts` as RFC 3339. */
  readonly time: string;
  readonly datacontenttype: "application/json";
  readonly data: UsageEventData;
}

/** Fields have one meaning in both kinds: a summary stands for `requests` decisions that agree in all other fields. */
export interface UsageEventData {
  /** `each`: one decision. `summary`: all like it within ten seconds. */
  readonly kind: "each" | "summary";
  /** The subject of the limit: `acme|u1`. Empty if no limit counted the request, or one that has no dimensions. */
  readonly key: string;
  /** What was asked for: charged if `allowed`. For a summary, the sum. */
  readonly cost: number;
  readonly allowed: boolean;
  /** Epoch milliseconds of the decision; for a summary, when its ten seconds began. */
  readonly ts: number;
  /** 1 for `each`. */
  readonly requests: number;
  readonly reason: DecisionReason;
  /** The caller's id of the request, if it gave one. Only for `each`. */
  readonly request_id?: string | undefined;
  /** The policy whose usage it is; undefined if none applied. */
  readonly policy?: string | undefined;
  readonly version?: number | undefined;
  /** The deciding limit, if it is one of `policy`: its name, else its dimensions. */
  readonly scope?: string | undefined;
  /** The most that the deciding window holds, and what it has left (for a summary, at last). */
  readonly limit?: number | undefined;
  readonly remaining?: number | undefined;
  /** The policy that denied, and its limit if one did: `orders/tenant`. */
  readonly denied_by?: string | undefined;
  /** Why the counters were not asked; undefined if they were. */
  readonly degraded?: DegradedReason | undefined;
  /** The region that the request named. Only for `each`. */
  readonly region?: string | undefined;
  /** The node that decided. */
  readonly node: string;
}

/** What an event takes in memory besides its texts, and each character of those, at most. */
const fixedBytes = 400;
const bytesPerCharacter = 2;

/** What queues allow for an event on average: ordinary ones take less. */
export const usualEventBytes = 1_024;

/** About how much memory an event takes. Callers choose some of its texts, so a bound on the number of events is not enough. */
export function usageEventBytes({ id, subject = "", data }: UsageEvent): number {
  const { key, policy = "", scope = "", denied_by = "", region = "" } = data;
  const characters =
    id.length + subject.length + key.length + policy.length + scope.length + denied_by.length + region.length;
  return fixedBytes + bytesPerCharacter * characters;
}

/** One event in JSON, on one line: `application/cloudevents+json`. */
export function renderUsageEvent(event: UsageEvent): string {
  return JSON.stringify(event);
}

/** Several events as a JSON array: `application/cloudevents-batch+json`. */
export function renderUsageEvents(events: readonly UsageEvent[]): string {
  return `[${events.map(renderUsageEvent).join(",")}]`;
}
