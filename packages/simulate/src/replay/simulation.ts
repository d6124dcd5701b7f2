import { type PreparedPolicies, preparePolicies } from "./prepare-policies.ts";
import { renderReport } from "./render-report.ts";
import type { SimulatedRequest } from "./simulated-request.ts";
import type { SimulationOptions } from "./simulation-options.ts";
import type { SimulationReport } from "./simulation-report.ts";
import { openRuns, type SimulationRuns } from "./simulation-runs.ts";
import { countRequest, createTotals, type SimulationTotals } from "./simulation-totals.ts";

/** Of a second with more requests, the rest is spread over the same second once more. */
const mostInSecond = 500_000;
const exampleCount = 5;

/**
 * Replays traffic against the policies in force and against a candidate, in bounded memory. Requests come in order of
 * time; those of a second without finer times are gathered, and decided twice: spread evenly over the second, which is
 * what everything but the range goes by, and all at its start.
 */
export class Simulation {
  readonly #options: SimulationOptions;
  readonly #candidate: PreparedPolicies;
  readonly #now: PreparedPolicies | undefined;
  readonly #gathered: SimulatedRequest[] = [];
  #gatheredMs = 0;
  #runs: SimulationRuns | undefined;
  readonly #totals: SimulationTotals = createTotals();

  constructor(options: SimulationOptions) {
    this.#options = options;
    const carried = new Set(options.carried);
    this.#candidate = preparePolicies(options.candidate, carried, options.sampledBy);
    this.#now = options.now === undefined ? undefined : preparePolicies(options.now, carried, options.sampledBy);
    const { findLimit, candidate } = options;
    const ids = [...candidate.policies, ...(candidate.fallback === undefined ? [] : [candidate.fallback])];
    if (findLimit !== undefined && !ids.some(({ id }) => id === findLimit.policy))
      throw new RangeError(
        `the candidate has no policy ${findLimit.policy}; it has ${ids.map(({ id }) => id).join(", ")}`,
      );
  }

  /** The next request, not earlier than those before it. */
  add(request: SimulatedRequest): void {
    const gathered = this.#gathered;
    if (gathered.length > 0 && (request.timeMs >= this.#gatheredMs + 1000 || gathered.length >= mostInSecond))
      this.#decideGathered();
    if (!request.wholeSecond && gathered.length === 0) {
      this.#decide(request, request.timeMs);
      return;
    }
    if (gathered.length === 0) this.#gatheredMs = Math.floor(request.timeMs / 1000) * 1000;
    gathered.push(request);
  }

  /** The result; call it once, after the last request. */
  finish(): SimulationReport {
    this.#decideGathered();
    return renderReport(this.#totals, this.#runs, this.#candidate, this.#now);
  }

  #decideGathered(): void {
    const requests = this.#gathered;
    if (requests.length === 0) return;
    let whole = 0;
    for (const { wholeSecond } of requests) if (wholeSecond) whole += 1;
    const stepMs = 1000 / Math.max(1, whole);
    if (whole < requests.length) this.#decideMixed(requests, stepMs);
    else for (let i = 0; i < whole; i++) this.#decide(requests[i]!, this.#gatheredMs + i * stepMs);
    requests.length = 0;
  }

  /** Requests with finer times keep theirs, between the ones that are spread. */
  #decideMixed(requests: readonly SimulatedRequest[], stepMs: number): void {
    let spread = 0;
    const timed = requests.map((request) => ({
      request,
      timeMs: request.wholeSecond ? this.#gatheredMs + spread++ * stepMs : request.timeMs,
    }));
    timed.sort((one, other) => one.timeMs - other.timeMs);
    for (const { request, timeMs } of timed) this.#decide(request, timeMs);
  }

  #decide(request: SimulatedRequest, timeMs: number): void {
    this.#runs ??= this.#begin(request);
    const { now, candidate, finder, demand, timeline } = this.#runs;
    const decision = candidate.decide(request, timeMs);
    const nowDecision = now?.decide(request, timeMs);
    if (decision === undefined || (now !== undefined && nowDecision === undefined)) {
      this.#countInvalid(request);
      return;
    }
    finder?.add(request, timeMs);
    const allowedNow = nowDecision === undefined ? request.wasDenied !== true : nowDecision.allowed;
    countRequest(this.#totals, request, timeMs, allowedNow, decision.allowed);
    demand.add(candidate, request, decision, allowedNow, timeMs);
    timeline.add(timeMs, allowedNow, decision.allowed);
  }

  #begin(request: SimulatedRequest): SimulationRuns {
    this.#totals.firstMs = request.timeMs;
    return openRuns(request, this.#candidate, this.#now, this.#options);
  }

  #countInvalid(request: SimulatedRequest): void {
    const { invalidExamples } = this.#totals;
    this.#totals.invalid += 1;
    if (invalidExamples.length < exampleCount) invalidExamples.push(request);
  }
}

/** Replays a list of requests, sorted by time. */
export function simulate(requests: Iterable<SimulatedRequest>, options: SimulationOptions): SimulationReport {
  const simulation = new Simulation(options);
  for (const request of requests) simulation.add(request);
  return simulation.finish();
}
