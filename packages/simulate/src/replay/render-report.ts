import type { PolicySet } from "sluice";
import { limitScope, renderWindow } from "sluice/internal";
import type { PreparedPolicies } from "./prepare-policies.ts";
import type { PolicyCount } from "./replay-run.ts";
import type { LimitLine, MissingReport, PolicyReport, SideReport, SimulationReport } from "./simulation-report.ts";
import { countLost, type SimulationRuns } from "./simulation-runs.ts";
import type { SimulationTotals } from "./simulation-totals.ts";

/** `runs` is undefined if there was no request. */
export function renderReport(
  totals: SimulationTotals,
  runs: SimulationRuns | undefined,
  candidate: PreparedPolicies,
  now: PreparedPolicies | undefined,
): SimulationReport {
  const { requests, allowedAllowed, allowedDenied, deniedAllowed, deniedDenied } = totals;
  const limits = runs?.finder?.found;
  const lost = runs === undefined ? 0 : countLost(runs) + (limits?.counters_lost ?? 0);
  return {
    requests,
    ...(runs === undefined ? {} : { first_ms: totals.firstMs, last_ms: totals.lastMs }),
    invalid: totals.invalid,
    now: renderSide(
      now === undefined ? "recording" : "policies",
      deniedAllowed + deniedDenied,
      requests,
      runs?.now?.deniedAtStart,
    ),
    candidate: renderSide("policies", allowedDenied + deniedDenied, requests, runs?.candidate.deniedAtStart),
    flips: {
      allowed_allowed: allowedAllowed,
      allowed_denied: allowedDenied,
      denied_allowed: deniedAllowed,
      denied_denied: deniedDenied,
    },
    policies: renderPolicies(runs),
    hurt: runs?.demand.hurt(requests) ?? { subjects: 0, exact: true, top: [] },
    timeline: runs?.timeline.timeline ?? { bucket_ms: 1000, buckets: [] },
    limit_lines: findLimitLines(candidate.policies),
    peaks: runs?.demand.peaks ?? [],
    ...(limits === undefined ? {} : { limits }),
    left_out: candidate.leftOut,
    missing: listMissing(runs),
    whole_seconds: totals.wholeSeconds,
    counters_lost: lost,
    notes: listNotes(totals, lost, now, runs),
  };
}

function renderSide(
  source: SideReport["source"],
  denied: number,
  requests: number,
  atStart: number | undefined,
): SideReport {
  return {
    source,
    allowed: requests - denied,
    denied,
    denied_share: requests === 0 ? 0 : denied / requests,
    ...(atStart === undefined
      ? {}
      : { range: { least_denied: Math.min(denied, atStart), most_denied: Math.max(denied, atStart) } }),
  };
}

const noCount: PolicyCount = { requests: 0, denied: 0, shadowDenied: 0 };

function renderPolicies(runs: SimulationRuns | undefined): readonly PolicyReport[] {
  if (runs === undefined) return [];
  const before = runs.now?.counts ?? new Map<string, PolicyCount>();
  const after = runs.candidate.counts;
  return [...new Set([...after.keys(), ...before.keys()])].sort().map((policy) => {
    const now = before.get(policy) ?? noCount;
    const candidate = after.get(policy) ?? noCount;
    return {
      policy,
      requests_now: now.requests,
      denied_now: now.denied,
      requests: candidate.requests,
      denied: candidate.denied,
      shadow_denied: candidate.shadowDenied,
    };
  });
}

function listMissing(runs: SimulationRuns | undefined): readonly MissingReport[] {
  return [...(runs?.candidate.missing ?? [])].map(([key, requests]) => {
    const [policy = "", dimension = ""] = key.split("\n");
    return { policy, dimension, requests };
  });
}

/** Limits with one counter for all requests. */
function findLimitLines({ policies }: PolicySet): readonly LimitLine[] {
  return policies
    .filter(({ mode }) => mode === "enforce")
    .flatMap(({ id, limits }) =>
      limits
        .filter(({ by }) => by.length === 0)
        .flatMap((limit) =>
          limit.windows.flatMap((window) => {
            if (window.per.kind !== "ms") return [];
            const per_second = (window.limit * 1000) / window.per.ms;
            return [{ policy: id, scope: limitScope(limit), window: renderWindow(window), per_second }];
          }),
        ),
    );
}

function listNotes(
  { requests, wholeSeconds, invalid, invalidExamples, hasRecorded, allowedDenied }: SimulationTotals,
  lost: number,
  now: PreparedPolicies | undefined,
  runs: SimulationRuns | undefined,
): readonly string[] {
  const notes: string[] = [];
  if (runs?.candidate.deniedAtStart !== undefined)
    notes.push(
      "The log has whole seconds. Requests were spread evenly over their second; the range also covers all of them at its start.",
    );
  else if (wholeSeconds > 0)
    notes.push(`${wholeSeconds} of ${requests} requests have whole seconds only, and were spread evenly over theirs.`);
  if (now === undefined)
    notes.push(
      hasRecorded
        ? "What is decided now was taken from the recording: its status says which requests were denied."
        : "The recording does not say what was denied, so everything counts as allowed now.",
    );
  if (allowedDenied > 0)
    notes.push(
      "Newly denied requests are an upper bound: after a first denial many clients wait, and the log cannot know that.",
    );
  notes.push(
    "Counters start empty, so the first window of each limit may deny less than it would in a running system.",
  );
  if (invalid > 0) {
    const example = JSON.stringify(invalidExamples[0]?.dimensions).slice(0, 200);
    notes.push(
      `${invalid} requests have a dimension that no limiter accepts, and were left out. The first: ${example}.`,
    );
  }
  for (const { policy, dimension, requests: lacking } of listMissing(runs))
    notes.push(
      `${lacking} of ${requests} requests lack ${dimension}, which policy ${policy} counts by. If it is not in the log for them, leave that limit out.`,
    );
  if (lost > 0)
    notes.push(
      `Memory was full: ${lost} live counters were dropped, so some requests that would be denied count as allowed. Replay less at once.`,
    );
  return notes;
}
