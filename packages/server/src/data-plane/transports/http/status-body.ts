import { redactText } from "../../../observe/telemetry/redact-text.ts";
import { renderPolicyProblem } from "../../../observe/telemetry/render-policy-problem.ts";
import { protocols } from "../../../protocol.ts";
import type { LeasesStatus } from "../../counters/running-counters.ts";
import type { CountersReport, ServerStatus } from "../../status/server-status.ts";
import type { StoreReport } from "../../status/store-report.ts";

/** Most characters of a policy store's error, which every viewer can read. */
const maxReasonLength = 1_000;

const maxProblems = 20;
const maxOverridden = 100;

/** A server's status in the words of the HTTP API. What is not known is left out. */
export function statusBody(status: ServerStatus): Readonly<Record<string, unknown>> {
  const { policies, queue, shed } = status;
  return {
    status: status.state,
    degraded: status.degraded.length === 0 ? undefined : status.degraded,
    detail: status.detail,
    version: status.version,
    node: status.node,
    pid: status.pid,
    worker: status.worker,
    started_at_ms: status.startedAtMs,
    uptime_ms: status.uptimeMs,
    policies: {
      generation: policies.generation,
      count: policies.count,
      state: policies.state,
      source: policies.source,
      path: policies.path,
      digest: policies.digest,
      taken_up_at_ms: policies.takenUpAtMs,
      age_ms: policies.ageMs,
      problem_count: policies.problems.length,
      problems: policies.problems.slice(0, maxProblems).map(renderPolicyProblem),
    },
    store: status.store && storeBody(status.store),
    counters: countersBody(status.counters),
    queue: { pending: queue.pending, max_pending: queue.maxPending },
    shed,
    protocols: Object.fromEntries(
      protocols.map((protocol) => {
        const { addresses, connections, turnedAway } = status.protocols[protocol];
        return [protocol, { addresses, connections, turned_away: turnedAway }];
      }),
    ),
  };
}

function storeBody(store: StoreReport): Readonly<Record<string, unknown>> {
  const { killSwitch, problems, overridden } = store;
  return {
    kind: store.kind,
    at: store.at,
    state: store.state,
    reason: store.reason === undefined ? undefined : redactText(store.reason, maxReasonLength),
    away_since_ms: store.awaySinceMs,
    generation: store.generation,
    newest_generation: store.newest,
    source: store.source,
    taken_up_at_ms: store.takenUpAtMs,
    digest: store.digest,
    push: store.push,
    kill_switch: killSwitch && {
      mode: killSwitch.mode,
      until_ms: killSwitch.untilMs,
      reason: killSwitch.reason,
      author: killSwitch.author,
    },
    problem_count: problems.length,
    problems: problems.slice(0, maxProblems).map(renderPolicyProblem),
    precedence: store.precedence,
    overridden_count: overridden.length,
    overridden: overridden.slice(0, maxOverridden),
    node_id: store.node.id,
    node_name: store.node.name,
  };
}

function countersBody(counters: CountersReport): Readonly<Record<string, unknown>> {
  if (counters.kind === "memory") {
    const { kind, bytes, maxCounters } = counters;
    return { kind, counters: counters.counters, max_counters: maxCounters, bytes };
  }
  const { kind, at, ready, waiting, inFlight, leases, shards } = counters;
  return {
    kind,
    at,
    ready,
    waiting,
    in_flight: inFlight,
    leases: leases && leasesBody(leases),
    shards: shards.map(({ name, cell, connected, breaker, roundTripMs, clockAheadMs, calls, failedCalls }) => ({
      shard: name,
      cell,
      connected,
      breaker,
      round_trip_ms: rounded(roundTripMs),
      clock_ahead_ms: rounded(clockAheadMs),
      calls,
      failed_calls: failedCalls,
    })),
  };
}

/** As `/readyz` tells it too. */
export function leasesBody({ held, tokens, stale, staleForMs }: LeasesStatus): Readonly<Record<string, unknown>> {
  return { held, tokens, stale, stale_for_ms: staleForMs === undefined ? undefined : Math.round(staleForMs) };
}

/** To microseconds. */
function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 1_000) / 1_000;
}
