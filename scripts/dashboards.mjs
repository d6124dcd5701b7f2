/**
 * What the Grafana dashboards show. `$rate` stands for the interval that rates are taken over, `J` for the servers that
 * are chosen. A query whose series appear only with an incident ends with `or vector(0)`, so that its panel says 0.
 *
 * @typedef {[expression: string, legend: string]} Query
 * @typedef {object} Panel
 * @property {string} title
 * @property {string} unit of Grafana: `reqps`, `s`, `percentunit`
 * @property {readonly Query[]} queries
 * @property {string} [help]
 * @property {"stat"} [as] one number instead of a plot
 * @property {number} [threshold] from where it is red
 *
 * @typedef {object} Dashboard
 * @property {string} uid
 * @property {string} title
 * @property {boolean} [byPolicy] whether it has a choice of policy, as `P`
 * @property {readonly Panel[]} panels
 */

const sum = (/** @type {string} */ by, /** @type {string} */ series) => `sum by (${by}) (rate(${series}[$rate]))`;
const quantile = (/** @type {number} */ q, /** @type {string} */ by, /** @type {string} */ name) =>
  `histogram_quantile(${q}, sum by (le${by}) (rate(${name}[$rate])))`;
const share = (/** @type {string} */ part, /** @type {string} */ whole) =>
  `(sum(rate(${part}[$rate])) or vector(0)) / (sum(rate(${whole}[$rate])) > 0) or vector(0)`;
const orNone = (/** @type {string} */ expression) => `${expression} or vector(0)`;

/** @type {readonly Dashboard[]} */
export const dashboards = [
  {
    uid: "sluice-fleet",
    title: "Sluice: fleet",
    panels: [
      { title: "Servers", unit: "short", as: "stat", queries: [['sum(up{job=~"$job"})', "up"]] },
      { title: "Checks", unit: "reqps", as: "stat", queries: [["sum(rate(sluice_checks_total{J}[$rate]))", "checks"]] },
      {
        ...{ title: "Denied", unit: "percentunit", as: "stat" },
        queries: [[share('sluice_checks_total{J,allowed="false"}', "sluice_checks_total{J}"), "denied"]],
      },
      {
        ...{ title: "Allowed without counters", unit: "percentunit", as: "stat", threshold: 0.001 },
        help: "The objective is at most 0.1 % over five minutes; SluiceFailingOpen pages above it.",
        queries: [
          [
            share('sluice_degraded_decisions_total{J,allowed="true",reason!="kill_switch"}', "sluice_checks_total{J}"),
            "open",
          ],
        ],
      },
      {
        title: "Checks by answer",
        unit: "reqps",
        queries: [[sum("allowed", "sluice_checks_total{J}"), "allowed: {{allowed}}"]],
      },
      {
        title: "Denials by reason",
        unit: "reqps",
        queries: [[orNone(sum("reason", "sluice_denials_total{J}")), "{{reason}}"]],
      },
      {
        ...{ title: "Time of a decision", unit: "s" },
        queries: [0.5, 0.99, 0.999].map((q) => [
          quantile(q, "", "sluice_check_duration_seconds_bucket{J}"),
          `p${q * 100}`,
        ]),
      },
      {
        ...{ title: "Time of a request, p99", unit: "s" },
        queries: [[quantile(0.99, ", protocol", "sluice_request_duration_seconds_bucket{J}"), "{{protocol}}"]],
      },
      {
        title: "Checks by protocol",
        unit: "reqps",
        queries: [[sum("protocol", "sluice_protocol_checks_total{J}"), "{{protocol}}"]],
      },
      {
        ...{ title: "Answered by on_failure", unit: "reqps" },
        queries: [
          [orNone(sum("reason, allowed", "sluice_degraded_decisions_total{J}")), "{{reason}}, allowed: {{allowed}}"],
        ],
      },
      {
        ...{ title: "Refused: overload and connections", unit: "reqps" },
        queries: [
          [orNone(sum("reason", "sluice_shed_checks_total{J}")), "checks: {{reason}}"],
          [orNone(sum("reason", "sluice_connections_turned_away_total{J}")), "connections: {{reason}}"],
        ],
      },
      { title: "Connections", unit: "short", queries: [["sum by (protocol) (sluice_connections{J})", "{{protocol}}"]] },
      {
        title: "CPU by server",
        unit: "percentunit",
        queries: [[sum("instance", "process_cpu_seconds_total{J}"), "{{instance}}"]],
      },
      {
        ...{ title: "Event loop delay, p99", unit: "s", threshold: 0.1 },
        queries: [["max by (instance) (nodejs_eventloop_lag_p99_seconds{J})", "{{instance}}"]],
      },
      {
        title: "Memory by server",
        unit: "bytes",
        queries: [["sum by (instance) (process_resident_memory_bytes{J})", "{{instance}}"]],
      },
      {
        title: "Versions",
        unit: "short",
        queries: [["count by (version, node) (sluice_build_info{J})", "Sluice {{version}}, Node {{node}}"]],
      },
    ],
  },
  {
    uid: "sluice-policy",
    title: "Sluice: one policy",
    byPolicy: true,
    panels: [
      {
        title: "Checks",
        unit: "reqps",
        queries: [[sum("allowed", "sluice_checks_total{J,P}"), "allowed: {{allowed}}"]],
      },
      {
        ...{ title: "Denied, by version", unit: "percentunit" },
        help: "Did a new version change how much is denied?",
        queries: [
          [
            '(sum by (version) (rate(sluice_checks_total{J,P,allowed="false"}[$rate])) or 0 * sum by (version) (rate(sluice_checks_total{J,P}[$rate]))) / sum by (version) (rate(sluice_checks_total{J,P}[$rate]))',
            "version {{version}}",
          ],
        ],
      },
      {
        title: "Checks by version",
        unit: "reqps",
        queries: [[sum("version", "sluice_checks_total{J,P}"), "version {{version}}"]],
      },
      {
        title: "Denials by reason",
        unit: "reqps",
        queries: [[orNone(sum("reason", "sluice_denials_total{J,P}")), "{{reason}}"]],
      },
      {
        ...{ title: "Window that decides", unit: "reqps" },
        queries: [
          [
            sum("scope, name, allowed", "sluice_limiting_window_total{J,P}"),
            "{{scope}} {{name}}, allowed: {{allowed}}",
          ],
        ],
      },
      {
        ...{ title: "How full the deciding window is", unit: "percentunit" },
        queries: [0.5, 0.9, 0.99].map((q) => [quantile(q, "", "sluice_window_used_ratio_bucket{J,P}"), `p${q * 100}`]),
      },
      { title: "Cost", unit: "short", queries: [[sum("allowed", "sluice_cost_total{J,P}"), "allowed: {{allowed}}"]] },
      {
        ...{ title: "Time of a decision", unit: "s" },
        queries: [0.5, 0.99].map((q) => [quantile(q, "", "sluice_check_duration_seconds_bucket{J,P}"), `p${q * 100}`]),
      },
      {
        ...{ title: "Answered by on_failure", unit: "reqps" },
        queries: [
          [orNone(sum("reason, allowed", "sluice_degraded_decisions_total{J,P}")), "{{reason}}, allowed: {{allowed}}"],
        ],
      },
      {
        title: "What shadow mode would deny",
        unit: "reqps",
        queries: [[orNone(sum("policy", "sluice_shadow_denials_total{J,P}")), "{{policy}}"]],
      },
    ],
  },
  {
    uid: "sluice-counters",
    title: "Sluice: stores and shards",
    panels: [
      { title: "Servers ready", unit: "short", as: "stat", queries: [["min(sluice_redis_ready{J})", "ready"]] },
      {
        title: "Breakers open",
        unit: "short",
        as: "stat",
        threshold: 1,
        queries: [["sum(sluice_redis_breaker_open{J})", "open"]],
      },
      {
        ...{ title: "CPU of the main thread", unit: "percentunit", threshold: 0.8 },
        queries: [["max by (shard) (sluice_redis_server_cpu_ratio{J})", "{{shard}}"]],
      },
      {
        title: "Commands",
        unit: "ops",
        queries: [["max by (shard) (sluice_redis_server_operations_per_second{J})", "{{shard}}"]],
      },
      {
        ...{ title: "Memory", unit: "bytes" },
        queries: [
          ["max by (shard) (sluice_redis_server_memory_bytes{J})", "{{shard}}"],
          ["max by (shard) (sluice_redis_server_memory_max_bytes{J})", "{{shard}}, at most"],
        ],
      },
      {
        ...{ title: "Evicted keys", unit: "short", threshold: 1 },
        queries: [["max by (shard) (increase(sluice_redis_server_evicted_keys_total{J}[$rate]))", "{{shard}}"]],
      },
      {
        title: "Calls",
        unit: "reqps",
        queries: [[sum("shard", "sluice_redis_call_duration_seconds_count{J}"), "{{shard}}"]],
      },
      {
        title: "Time of a call, p99",
        unit: "s",
        queries: [[quantile(0.99, ", shard", "sluice_redis_call_duration_seconds_bucket{J}"), "{{shard}}"]],
      },
      {
        title: "Failed calls",
        unit: "reqps",
        queries: [[sum("shard, error", "sluice_redis_call_failures_total{J}"), "{{shard}} {{error}}"]],
      },
      {
        title: "Round trip",
        unit: "s",
        queries: [["max by (shard) (sluice_redis_round_trip_seconds{J})", "{{shard}}"]],
      },
      {
        ...{ title: "Clocks", unit: "s", threshold: 1 },
        queries: [["max by (shard) (abs(sluice_redis_clock_ahead_seconds{J}))", "{{shard}}"]],
      },
      {
        ...{ title: "Checks in a call", unit: "short" },
        queries: [
          [
            "sum(rate(sluice_redis_questions_total{J}[$rate])) / sum(rate(sluice_redis_calls_total{J}[$rate]))",
            "checks",
          ],
        ],
      },
      {
        ...{ title: "Waiting", unit: "short" },
        queries: [
          ["sum(sluice_redis_waiting_questions{J})", "checks"],
          ["sum(sluice_redis_calls_in_flight{J})", "calls in flight"],
        ],
      },
      {
        ...{ title: "Without an answer in time", unit: "reqps" },
        queries: [
          ["sum(rate(sluice_redis_timeouts_total{J}[$rate]))", "the server was late"],
          ["sum(rate(sluice_redis_starved_total{J}[$rate]))", "this process did not run"],
        ],
      },
    ],
  },
  {
    uid: "sluice-leases",
    title: "Sluice: leases, hot keys and fairness",
    panels: [
      {
        ...{ title: "Decided without a counter server", unit: "percentunit", as: "stat" },
        queries: [[share('sluice_lease_decisions_total{J,by!="centre"}', "sluice_lease_decisions_total{J}"), "local"]],
      },
      { title: "Leases", unit: "short", as: "stat", queries: [["sum(sluice_leases{J})", "leases"]] },
      {
        title: "Decisions by place",
        unit: "reqps",
        queries: [[sum("by", "sluice_lease_decisions_total{J}"), "{{by}}"]],
      },
      {
        title: "Requests for tokens",
        unit: "reqps",
        queries: [[sum("outcome", "sluice_lease_fetches_total{J}"), "{{outcome}}"]],
      },
      { title: "Tokens", unit: "short", queries: [[sum("outcome", "sluice_lease_tokens_total{J}"), "{{outcome}}"]] },
      {
        ...{ title: "Lost tokens", unit: "percentunit", threshold: 0.05 },
        queries: [
          [
            share('sluice_lease_tokens_total{J,outcome="lost"}', 'sluice_lease_tokens_total{J,outcome="granted"}'),
            "lost",
          ],
        ],
      },
      {
        ...{ title: "Stale leases", unit: "short" },
        queries: [["sum by (instance) (sluice_leases_stale{J})", "{{instance}}"]],
      },
      {
        title: "Tokens in hand",
        unit: "short",
        queries: [["sum by (instance) (sluice_lease_tokens_in_hand{J})", "{{instance}}"]],
      },
      {
        title: "Leases of clients",
        unit: "reqps",
        queries: [[orNone(sum("outcome", "sluice_lease_requests_total{J}")), "{{outcome}}"]],
      },
      {
        ...{ title: "Hottest counters", unit: "reqps" },
        help: "Present with --hot-key-metrics. Subjects are labels here.",
        queries: [
          [
            "topk(10, sum by (policy, scope, subject) (sluice_hot_key_decisions_per_second{J}))",
            "{{policy}} {{scope}} {{subject}}",
          ],
        ],
      },
      {
        ...{ title: "Most denied counters", unit: "reqps" },
        queries: [
          [
            "topk(10, sum by (policy, scope, subject) (sluice_hot_key_denials_per_second{J})) or vector(0)",
            "{{policy}} {{scope}} {{subject}}",
          ],
        ],
      },
      {
        ...{ title: "Denied, by policy", unit: "percentunit" },
        help: "A policy that denies far more than the others starves its callers, or does its work.",
        queries: [
          [
            'topk(10, sum by (policy) (rate(sluice_checks_total{J,allowed="false"}[$rate])) / sum by (policy) (rate(sluice_checks_total{J}[$rate]))) or vector(0)',
            "{{policy}}",
          ],
        ],
      },
      {
        ...{ title: "Denials by owner", unit: "reqps" },
        queries: [
          [
            'sum by (owner) (sum by (job, policy) (rate(sluice_checks_total{J,allowed="false"}[$rate])) * on (job, policy) group_right () max by (job, policy, owner) (sluice_policy_owner{J})) or vector(0)',
            "{{owner}}",
          ],
        ],
      },
    ],
  },
  {
    uid: "sluice-control",
    title: "Sluice: control plane and propagation",
    panels: [
      {
        title: "Policy store reachable",
        unit: "short",
        as: "stat",
        queries: [["min(sluice_store_reachable{J})", "reachable"]],
      },
      {
        ...{ title: "Servers behind", unit: "short", as: "stat", threshold: 1 },
        queries: [
          [
            "count(sluice_store_generation_in_force{J} < on (job) group_left () max by (job) (sluice_store_generation{J})) or vector(0)",
            "behind",
          ],
        ],
      },
      {
        title: "Generation in force",
        unit: "short",
        queries: [["sluice_store_generation_in_force{J}", "{{instance}}"]],
      },
      {
        ...{ title: "From a change until it decides", unit: "s" },
        queries: [0.5, 0.99].map((q) => [
          `histogram_quantile(${q}, sum by (le) (increase(sluice_store_take_up_seconds_bucket{J}[1h])))`,
          `p${q * 100}, last hour`,
        ]),
      },
      {
        ...{ title: "How changes were heard of", unit: "short" },
        queries: [
          ["sum(increase(sluice_store_pushes_total{J}[1h]))", "pushed, last hour"],
          ["sum(increase(sluice_store_found_by_looking_total{J}[1h]))", "found by polling, last hour"],
        ],
      },
      { title: "Push connected", unit: "short", queries: [["sum(sluice_store_push_connected{J})", "servers"]] },
      {
        title: "Refused generations",
        unit: "short",
        threshold: 1,
        queries: [["sum(increase(sluice_store_generations_refused_total{J}[1h]))", "last hour"]],
      },
      {
        title: "State of the store",
        unit: "short",
        queries: [["sum by (state) (sluice_store_state{J})", "{{state}}"]],
      },
      {
        ...{ title: "Left out and overridden", unit: "short" },
        queries: [
          ["max(sluice_store_problems{J})", "left out"],
          ["max(sluice_store_overridden{J})", "overridden"],
        ],
      },
      {
        title: "Kill switch",
        unit: "short",
        threshold: 1,
        queries: [["max by (mode) (sluice_kill_switch{J})", "{{mode}}"]],
      },
      { title: "Policies in force", unit: "short", queries: [["sum by (domain) (sluice_policies{J})", "{{domain}}"]] },
      {
        ...{ title: "Reloads of policy files", unit: "short" },
        queries: [
          ["sum(increase(sluice_config_reloads_total{J}[1h]))", "applied, last hour"],
          ["sum(increase(sluice_config_reload_failures_total{J}[1h]))", "refused, last hour"],
        ],
      },
    ],
  },
  {
    uid: "sluice-usage",
    title: "Sluice: usage and its sinks",
    panels: [
      { title: "Events sent", unit: "cps", queries: [[sum("sink", "sluice_usage_events_sent_total{J}"), "{{sink}}"]] },
      {
        title: "Events waiting",
        unit: "short",
        queries: [["sum by (sink) (sluice_usage_events_waiting{J})", "{{sink}}"]],
      },
      {
        ...{ title: "How far a sink is behind", unit: "s", threshold: 60 },
        queries: [
          [
            "sum by (sink) (sluice_usage_events_waiting{J}) / (sum by (sink) (rate(sluice_usage_events_sent_total{J}[$rate])) > 0) or 0 * sum by (sink) (sluice_usage_events_waiting{J})",
            "{{sink}}",
          ],
        ],
      },
      {
        title: "Failed sends",
        unit: "cps",
        queries: [[sum("sink", "sluice_usage_events_failed_sends_total{J}"), "{{sink}}"]],
      },
      {
        title: "Events dropped",
        unit: "cps",
        threshold: 0.001,
        queries: [[orNone(sum("sink, reason", "sluice_usage_events_dropped_total{J}")), "{{sink}} {{reason}}"]],
      },
      {
        ...{ title: "Sums of usage", unit: "cps" },
        queries: [
          ["sum(rate(sluice_usage_sums_stored_total{J}[$rate]))", "stored"],
          ["sum(rate(sluice_usage_sums_dropped_total{J}[$rate]))", "dropped"],
        ],
      },
      { title: "Sums waiting", unit: "short", queries: [["sum(sluice_usage_sums_waiting{J})", "sums"]] },
      {
        ...{ title: "Records of denials", unit: "cps" },
        queries: [
          ["sum(rate(sluice_denial_records_stored_total{J}[$rate]))", "stored"],
          ["sum(rate(sluice_denial_records_dropped_total{J}[$rate]))", "dropped"],
        ],
      },
      { title: "Records waiting", unit: "short", queries: [["sum(sluice_denial_records_waiting{J})", "records"]] },
      {
        title: "Decisions of untracked subjects",
        unit: "reqps",
        queries: [["sum(rate(sluice_usage_untracked_decisions_total{J}[$rate]))", "decisions"]],
      },
    ],
  },
];
