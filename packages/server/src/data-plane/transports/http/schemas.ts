import { errorCodes, type JsonSchema } from "sluice";
import { degradations } from "../../status/readiness.ts";
import { rateLimitResponseSchema } from "../envoy/rate-limit-json.ts";
import { hotKeysHereSchema } from "./hot-keys-body.ts";
import { integer, list, number, object, text, yesOrNo } from "./schema-parts.ts";

const reason: JsonSchema = {
  enum: [
    "within_limits",
    "over_limit",
    "never_fits",
    "blocked",
    "deny_list",
    "missing_dimension",
    "unlimited",
    "degraded",
  ],
};

export const windowSchema: JsonSchema = object(
  {
    limit: number,
    per: {
      anyOf: [
        { type: "string", description: "A duration, or never.", examples: ["1s", "15m", "never"] },
        object({ calendar: { enum: ["day", "month"] }, time_zone: text }),
      ],
    },
    burst: number,
    name: text,
    label: {
      type: "string",
      description:
        "In decisions: what tells it from other windows under the same policy and scope. Absent where it is the only one.",
    },
  },
  "burst",
  "name",
  "label",
);

const queue: JsonSchema = object({ position: number, delay_ms: number });

const limitDecision: JsonSchema = object(
  {
    policy: text,
    version: integer,
    scope: text,
    subject: text,
    algorithm: text,
    allowed: yesOrNo,
    reason,
    window: windowSchema,
    cost: number,
    limit: number,
    remaining: number,
    used: number,
    retry_after_ms: integer,
    reset_after_ms: integer,
    queue,
    shadow: yesOrNo,
  },
  "retry_after_ms",
  "queue",
);

const shadowDenial: JsonSchema = object(
  { policy: text, version: integer, scope: text, reason, retry_after_ms: integer },
  "scope",
  "retry_after_ms",
);

const decisionOptional = {
  policy: { type: "string", description: "The policy that speaks: the most restrictive one." },
  version: integer,
  scope: text,
  window: windowSchema,
  limit: { type: "number", description: "The most that window ever holds." },
  remaining: {
    type: "number",
    description: "The largest cost that would pass now: the least over every enforced window and limit.",
  },
  limit_remaining: {
    type: "number",
    description: "The same by the limit that speaks alone. Absent: the same as remaining.",
  },
  used: number,
  retry_after_ms: {
    type: "integer",
    description:
      "First millisecond at which the same request passes, if nothing else comes. Absent: allowed, or never.",
  },
  reset_after_ms: integer,
  reset_at_ms: { type: "integer", description: "Epoch milliseconds." },
  more_after_ms: {
    type: "integer",
    description:
      "First millisecond at which the limit that speaks has more left, if nothing else comes. Absent: no more ever comes, or retry_after_ms says when the same request passes.",
  },
  queue,
  degraded: { type: "string", description: "Why the counters could not be asked." },
  shadow: { ...list(shadowDenial), description: "What policies in shadow mode would have denied." },
  limits: { ...list(limitDecision), description: "Every limit's answer, where details asked for it." },
  receipt: {
    type: "string",
    description: "For POST /v1/give-back, where receipt asked for one and something was taken.",
  },
} satisfies Readonly<Record<string, JsonSchema>>;

const decisionProperties = {
  allowed: yesOrNo,
  reason,
  cost: number,
  state: { enum: ["normal", "warning", "throttled"] },
  deny_count: number,
  replayed: { type: "boolean", description: "The same id was decided before, and nothing was charged again." },
  preview: yesOrNo,
  ...decisionOptional,
} satisfies Readonly<Record<string, JsonSchema>>;

const decision: JsonSchema = object(decisionProperties, ...Object.keys(decisionOptional));

const denial: JsonSchema = {
  description: "A problem of RFC 9457, with the decision's fields beside it.",
  ...object(
    {
      type: text,
      title: text,
      status: integer,
      detail: text,
      "violated-policies": list(text),
      ...decisionProperties,
    },
    "violated-policies",
    ...Object.keys(decisionOptional),
  ),
};

const error: JsonSchema = object(
  {
    type: text,
    title: text,
    status: integer,
    code: { enum: [...errorCodes] },
    detail: text,
    problems: {
      ...list(object({ field: text, message: text, line: integer, column: integer }, "line", "column")),
      description:
        "Every field that is wrong, the first 20 of them; then how many more. With its place where the body was YAML.",
    },
    current_version: { type: "integer", description: "With version_conflict: the version that there is; 0: none." },
    current: { type: "object", description: "With version_conflict of a subject: what is kept of it." },
  },
  "problems",
  "current_version",
  "current",
);

const leasesStatus: JsonSchema = {
  description: "Leases from counter servers: held, units of cost left to spend, and how many are beyond their time.",
  ...object({ held: integer, tokens: integer, stale: integer, stale_for_ms: integer }, "stale_for_ms"),
};

const protocolStatus: JsonSchema = object({ addresses: list(text), connections: integer, turned_away: integer });

export type SchemaName =
  | "Decision"
  | "Denial"
  | "Error"
  | "BatchAnswer"
  | "GivenBack"
  | "Reset"
  | "GivenLease"
  | "Policies"
  | "Explanation"
  | "EnvoyAnswer"
  | "Live"
  | "Ready"
  | "HotKeysHere"
  | "Status";

/** What the server answers with, by name. */
export const schemas: Readonly<Record<SchemaName, JsonSchema>> = {
  Decision: decision,
  Denial: denial,
  Error: error,
  BatchAnswer: object({
    answers: list({
      anyOf: [object({ status: integer, decision }), object({ status: integer, error })],
    }),
  }),
  Reset: object({
    counters: {
      type: "array",
      items: object({ policy: { type: "string" }, scope: { type: "string" }, subject: { type: "string" } }),
      description: "The counters that were forgotten, each of one limit and subject.",
    },
  }),
  GivenBack: object({
    given_back: {
      type: "boolean",
      description: "False where the receipt was void: used already, too old, or its counters were reset since.",
    },
  }),
  GivenLease: object(
    {
      granted: {
        type: "integer",
        description: "Units that may be spent, beside those kept. 0: refused for now, or not wanted.",
      },
      epoch: { type: "integer", description: "Names this grant, and what was kept, for settled." },
      unspent: { type: "integer", description: "Granted and unspent of this counter, on all clients together." },
      forgotten: {
        type: "integer",
        description: "Units said to be kept that were never granted, or are forgotten: not to be spent. Absent: none.",
      },
      lease_ms: {
        type: "integer",
        description: "How long after the call began the units are spent; then they are renewed, or given back.",
      },
      stale_ms: { type: "integer", description: "How much longer while no server answers." },
      cost: { type: "integer", description: "What one check like this takes, if it does not say a cost of its own." },
      decision,
    },
    "forgotten",
  ),
  Policies: object(
    { generation: integer, policies: list({ type: "object" }), default: {}, subjects: list({}), descriptors: list({}) },
    "descriptors",
  ),
  Explanation: object(
    {
      request: { type: "object" },
      domain: text,
      endpoint: text,
      policies: list(object({ policy: text, applies: yesOrNo, why: text })),
      limits: list(
        object(
          {
            policy: text,
            scope: text,
            subject: text,
            counter: text,
            cost: number,
            tier: text,
            missing: {
              ...list(text),
              description:
                "Dimensions of the limit that the request does not carry. All requests that lack them share this counter.",
            },
            shadow: yesOrNo,
            counted: { type: "string", description: "How the limit is counted, in words: exactly, or by leases." },
            allowance: {
              type: "number",
              description:
                "By how much leases may exceed what the limit allows, at most. 0: nothing of it is ever leased.",
            },
            windows: list(
              object({
                window: windowSchema,
                remaining: number,
                reset_after_ms: number,
                state: { type: "object", additionalProperties: number },
                arithmetic: list(text),
              }),
            ),
          },
          "tier",
        ),
      ),
      decision,
    },
    "endpoint",
  ),
  EnvoyAnswer: rateLimitResponseSchema,
  Live: object({ status: { const: "live" } }),
  Ready: object(
    {
      status: {
        enum: ["ready", "degraded", "unready", "stopping"],
        description:
          "ready and degraded: send requests here. unready: only with ?strict, while counters cannot be reached.",
      },
      degraded: {
        type: "array",
        items: { enum: [...degradations] },
        description: "What is wrong while requests are still answered. Absent where nothing is.",
      },
      config: {
        enum: ["current", "stale"],
        description: "stale: what is on disk was refused, and the last good policies are in force.",
      },
      generation: integer,
      policies: integer,
      problem_count: integer,
      problems: list(text),
      counters: {
        description: "The servers that hold counters: how many there are, and which are not asked now.",
        ...object(
          { shards: integer, leases: leasesStatus, away: list(object({ shard: text, cell: text, why: text }, "cell")) },
          "leases",
          "away",
        ),
      },
      code: text,
      detail: text,
    },
    "problem_count",
    "problems",
    "counters",
    "code",
    "detail",
    "degraded",
  ),
  HotKeysHere: hotKeysHereSchema,
  Status: object(
    {
      status: { enum: ["ready", "degraded", "stopping"] },
      degraded: { type: "array", items: { enum: [...degradations] } },
      detail: text,
      version: text,
      node: text,
      pid: integer,
      worker: { type: "integer", description: "Which of several processes behind the same ports answers." },
      started_at_ms: integer,
      uptime_ms: integer,
      policies: object(
        {
          generation: integer,
          count: integer,
          state: { enum: ["current", "stale"] },
          source: {
            enum: ["files", "snapshot", "none"],
            description: "snapshot: the last good policies, because those on disk could not be taken up at the start.",
          },
          path: text,
          digest: { type: "string", description: "SHA-256 over the names and texts of the policy files in force." },
          taken_up_at_ms: integer,
          age_ms: integer,
          problem_count: integer,
          problems: list(text),
        },
        "path",
      ),
      counters: {
        anyOf: [
          object({ kind: { const: "memory" }, counters: integer, max_counters: integer, bytes: integer }),
          object(
            {
              kind: { const: "redis" },
              at: text,
              ready: yesOrNo,
              waiting: integer,
              in_flight: integer,
              leases: leasesStatus,
              shards: list(
                object(
                  {
                    shard: text,
                    cell: text,
                    connected: yesOrNo,
                    breaker: { enum: ["closed", "open", "half_open"] },
                    round_trip_ms: number,
                    clock_ahead_ms: number,
                    calls: integer,
                    failed_calls: integer,
                  },
                  "cell",
                  "round_trip_ms",
                  "clock_ahead_ms",
                ),
              ),
            },
            "leases",
          ),
        ],
      },
      store: {
        description: "How it stands to the policy store, where there is one.",
        ...object(
          {
            kind: { enum: ["postgres", "sqlite"] },
            at: text,
            state: {
              enum: ["current", "stale", "away", "expired"],
              description:
                "stale: its newest generation cannot be taken up. away: it cannot be asked, and the last good policies " +
                "decide. expired: the same, for longer than the grace.",
            },
            reason: text,
            away_since_ms: integer,
            generation: { type: "integer", description: "The generation of the store that is decided by." },
            newest_generation: integer,
            source: {
              enum: ["store", "snapshot"],
              description: "snapshot: what was kept of the store, because it could not be reached at the start.",
            },
            taken_up_at_ms: integer,
            digest: text,
            push: object({ kind: { enum: ["postgres", "redis", "process", "none"] }, connected: yesOrNo }),
            kill_switch: object({ mode: { enum: ["open", "closed"] }, until_ms: integer, reason: text, author: text }),
            problem_count: integer,
            problems: list(text),
            precedence: { enum: ["files", "store"] },
            overridden_count: integer,
            overridden: list(text),
            node_id: text,
            node_name: text,
          },
          "reason",
          "away_since_ms",
          "kill_switch",
        ),
      },
      queue: object({ pending: integer, max_pending: integer }),
      shed: object({ pending: integer, rate: integer }),
      protocols: object({ http: protocolStatus, grpc: protocolStatus, resp: protocolStatus, admin: protocolStatus }),
    },
    "degraded",
    "detail",
    "worker",
    "store",
  ),
};
