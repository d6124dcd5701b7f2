import {
  type BodyOf,
  type BodyShape,
  boolean,
  byKind,
  choice,
  constant,
  described,
  fromView,
  integer,
  listOf,
  number,
  text,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { degradations, leases } from "./readiness.ts";

/** To microseconds. */
const preciseMs: BodyShape<number, number> = fromView(number, (ms: number) => Math.round(ms * 1_000) / 1_000);

const policies = objectOf({
  generation: integer,
  count: integer,
  state: choice(["current", "stale"]),
  source: described(
    choice(["files", "snapshot", "none"]),
    "snapshot: the last good policies, because those on disk could not be applied at the start.",
  ),
  path: optional(text),
  digest: described(text, "SHA-256 over the names and texts of the policy files in force."),
  taken_up_at_ms: integer,
  age_ms: integer,
  problem_count: integer,
  problems: listOf(text),
});

const store = objectOf({
  kind: choice(["postgres", "sqlite"]),
  at: text,
  state: described(
    choice(["current", "stale", "away", "expired"]),
    "stale: its newest generation cannot be applied. away: it is unavailable, and the last good policies decide. " +
      "expired: the same, for longer than the grace.",
  ),
  reason: optional(text),
  away_since_ms: optional(integer),
  generation: described(integer, "The store's generation in force."),
  newest_generation: integer,
  source: described(
    choice(["store", "snapshot", "topic"]),
    "snapshot: the policies kept on disk, because the store was unavailable at the start. " +
      "topic: those in the Kafka topic, because the store is unavailable.",
  ),
  taken_up_at_ms: integer,
  digest: text,
  push: objectOf({
    kind: choice(["postgres", "redis", "kafka", "process", "none"]),
    connected: boolean,
    topic_generation: optional(described(integer, "The newest complete generation in the Kafka topic.")),
  }),
  kill_switch: optional(objectOf({ mode: choice(["open", "closed"]), until_ms: integer, reason: text, author: text })),
  disabled: described(
    listOf(objectOf({ policy: text, mode: choice(["allow", "shadow"]), until_ms: integer, reason: text })),
    "Policies that are disabled for a time.",
  ),
  blocked: described(integer, "How many subjects are blocked."),
  problem_count: integer,
  problems: listOf(text),
  precedence: choice(["files", "store"]),
  overridden_count: integer,
  overridden: listOf(text),
  node_id: text,
  node_name: text,
});
export type StoreStatusBody = BodyOf<typeof store>;

const shard = objectOf({
  shard: text,
  cell: optional(text),
  connected: boolean,
  breaker: choice(["closed", "open", "half_open"]),
  round_trip_ms: optional(preciseMs),
  clock_ahead_ms: optional(preciseMs),
  load: optional(
    described(
      objectOf({
        cpu: optional(described(number, "The share of a core that its main thread used lately.")),
        operations_per_second: integer,
        evicted_keys: integer,
        memory_bytes: integer,
        max_memory_bytes: described(integer, "0: as much as the machine has."),
      }),
      "The server's report about itself, at most 15 seconds old. Absent if it may not be asked.",
    ),
  ),
  calls: integer,
  failed_calls: integer,
});
export type ShardStatusBody = BodyOf<typeof shard>;

const counters = byKind({
  memory: objectOf({ kind: constant("memory"), counters: integer, max_counters: integer, bytes: integer }),
  redis: objectOf({
    kind: constant("redis"),
    at: text,
    ready: boolean,
    waiting: integer,
    in_flight: integer,
    leases: optional(leases),
    shards: listOf(shard),
  }),
});
export type CountersStatusBody = BodyOf<typeof counters>;

const strong = objectOf({
  at: described(text, "Where the database is."),
  breaker: choice(["closed", "open", "half_open"]),
  waiting: described(integer, "Checks and other calls that wait for a transaction."),
  calls: integer,
  transactions: integer,
  failed_transactions: integer,
});

const sink = objectOf({
  sink: described(text, "Its kind and where it is."),
  waiting: described(integer, "Usage events that wait to be sent."),
  sent: integer,
  failed: described(integer, "Attempts to send that failed, most of which are repeated."),
  dropped: integer,
});

const protocol = objectOf({ addresses: listOf(text), connections: integer, turned_away: integer });

/** The state of a server, for operators. */
export const status = objectOf({
  status: choice(["ready", "degraded", "stopping"]),
  degraded: optional(listOf(choice(degradations))),
  detail: optional(text),
  version: text,
  node: text,
  pid: integer,
  worker: optional(described(integer, "The number of the answering process, among several behind the same ports.")),
  started_at_ms: integer,
  uptime_ms: integer,
  policies,
  store: optional(described(store, "The state of the policy store, if there is one.")),
  counters,
  strong: optional(described(strong, "The database of policies with `counters: strong`, once it is used.")),
  queue: objectOf({ pending: integer, max_pending: integer }),
  shed: objectOf({ pending: integer, rate: integer }),
  sinks: optional(described(listOf(sink), "Where usage events go. Absent: nowhere.")),
  protocols: objectOf({ http: protocol, grpc: protocol, resp: protocol, admin: protocol }),
});
export type StatusBody = BodyOf<typeof status>;
