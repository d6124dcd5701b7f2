import type { Decision, PolicySet } from "sluice";
import { explainIdentity } from "./identity-causes.ts";
import type { IdentityCause, IdentityReport } from "./identity-report.ts";
import { everyDimension, preparePolicies } from "./prepare-policies.ts";
import type { RecordingFacts } from "./recording-lines.ts";
import { ReplayRun } from "./replay-run.ts";
import type { RecordedDecision, RecordedMoment, SimulatedRequest } from "./simulated-request.ts";

const usualCounterBytes = 128 * 1024 * 1024;
const exampleCount = 5;

export interface IdentityRunOptions {
  /** Of every recording that the requests come from. They are read again at the end. */
  readonly recordings: readonly RecordingFacts[];
  readonly sampledBy: string | undefined;
  readonly maxCounterBytes?: number | undefined;
}

/**
 * Replays a recording under its own policies, and compares each decision with the recorded one. Requests come in order of time.
 */
export class IdentityRun {
  readonly #options: IdentityRunOptions;
  #run: ReplayRun | undefined;
  #policies: PolicySet | undefined;
  /** Limits that the sample does not answer, by policy and scope. */
  #leftOut: ReadonlySet<string> = new Set();
  #compared = 0;
  #agreed = 0;
  #skipped = 0;
  #forced = 0;
  #degraded = 0;
  readonly #examples: IdentityReport["examples"][number][] = [];
  readonly #causes: Map<IdentityCause["cause"], number> = new Map();

  constructor(options: IdentityRunOptions) {
    this.#options = options;
  }

  add(request: SimulatedRequest): void {
    const { recorded } = request;
    if (recorded?.policies === undefined) return;
    if (recorded.decision.reason === "degraded") {
      // Counters had no part in it, or cannot be known to have had one.
      if (recorded.decision.policy === undefined) this.#forced += 1;
      else this.#degraded += 1;
      return;
    }
    const run = this.#follow(request, recorded, recorded.policies);
    const { policy, scope } = recorded.decision;
    if (!recorded.decision.allowed && this.#leftOut.has(limitKey(policy, scope))) {
      this.#skipped += 1;
      return;
    }
    const replayed = run.decide(request, request.timeMs);
    this.#compared += 1;
    if (replayed !== undefined && this.#isSame(recorded.decision, replayed)) {
      this.#agreed += 1;
      return;
    }
    this.#note(request, recorded.decision, replayed);
  }

  /** Call it after the last request, when the recordings were read to their end. */
  finish(): IdentityReport {
    const { recordings, sampledBy } = this.#options;
    return explainIdentity({
      ...{ recordings, sampledBy },
      ...{ compared: this.#compared, agreed: this.#agreed, examples: this.#examples },
      ...{ skipped: this.#skipped, forced: this.#forced, degraded: this.#degraded, causes: this.#causes },
      lost: this.#run?.countersLost ?? 0,
    });
  }

  #follow(first: SimulatedRequest, { policies: found }: RecordedMoment, policies: PolicySet): ReplayRun {
    if (this.#run !== undefined && found === this.#policies) return this.#run;
    const { sampledBy, maxCounterBytes = usualCounterBytes } = this.#options;
    const prepared = preparePolicies(policies, new Set([everyDimension]), sampledBy, "as they are");
    this.#leftOut = new Set(prepared.leftOut.map(({ policy, scope }) => limitKey(policy, scope)));
    this.#policies = policies;
    if (this.#run === undefined)
      this.#run = new ReplayRun({ policies: prepared.policies, domain: undefined, first, maxCounterBytes });
    else this.#run.usePolicies(prepared.policies);
    return this.#run;
  }

  /** With a sample, the limit that speaks may be one that was left out. */
  #isSame(recorded: RecordedDecision, replayed: Decision): boolean {
    if (recorded.allowed !== replayed.allowed) return false;
    if (this.#leftOut.size > 0 && recorded.allowed) return true;
    const { reason, policy, scope, remaining } = replayed;
    if (recorded.reason !== reason || recorded.policy !== policy || recorded.scope !== scope) return false;
    return recorded.remaining === remaining;
  }

  #note(request: SimulatedRequest, recorded: RecordedDecision, replayed: Decision | undefined): void {
    const cause = this.#findCause(recorded, replayed);
    this.#causes.set(cause, (this.#causes.get(cause) ?? 0) + 1);
    if (this.#examples.length >= exampleCount) return;
    this.#examples.push({
      at_ms: Math.floor(request.timeMs),
      dimensions: request.dimensions,
      recorded: describe(recorded),
      replayed: replayed === undefined ? "refused" : describe(replayed),
    });
  }

  /** What most likely made the difference, of what is known to have happened. */
  #findCause(recorded: RecordedDecision, replayed: Decision | undefined): IdentityCause["cause"] {
    const { recordings } = this.#options;
    const sum = (...names: readonly (keyof RecordingFacts["counts"])[]): number =>
      recordings.reduce((all, { counts }) => all + names.reduce((one, name) => one + counts[name], 0), 0);
    const heads = recordings.map(({ head }) => head);
    if (replayed === undefined) return "hashed";
    if (heads.some(({ leases }) => leases) || sum("lease") > 0) return "leases";
    if (sum("dropped") > 0) return "dropped";
    if (sum("charge", "give_back", "block", "reset", "hold") > 0) return "changed_counters";
    if (this.#degraded > 0 || this.#forced > 0) return "degraded";
    if (heads.some(({ workers = 1 }) => workers > recordings.length) || this.#hasOtherNodes()) return "several_nodes";
    if (heads.some(({ fresh }) => fresh !== true) && hasMore(replayed, recorded)) return "counters_not_empty";
    if (heads.some(({ hashed }) => hashed.length > 0)) return "hashed";
    if (sum("own_limits") > 0) return "own_limits";
    return "unknown";
  }

  #hasOtherNodes(): boolean {
    return new Set(this.#options.recordings.map(({ head }) => head.node)).size > 1;
  }
}

/** Whether the replay left more than there was: something was charged that the recording does not have. */
function hasMore(replayed: Decision, recorded: RecordedDecision): boolean {
  if (replayed.allowed !== recorded.allowed) return replayed.allowed;
  return (replayed.remaining ?? 0) >= (recorded.remaining ?? 0);
}

function describe({ allowed, reason, policy, scope, remaining }: RecordedDecision): string {
  const by = policy === undefined ? "" : ` by ${policy}${scope === undefined ? "" : `/${scope}`}`;
  return `${allowed ? "allowed" : "denied"} (${reason})${by}${remaining === undefined ? "" : `, ${remaining} remaining`}`;
}

function limitKey(policy: string | undefined, scope: string | undefined): string {
  return `${policy ?? ""}\n${scope ?? ""}`;
}
