import type { Clock } from "../clock.ts";
import type { Receipt, ResolvedLimit, TakeAnswer } from "../counters/counter-store.ts";
import { outageReason } from "../counters/store-unavailable.ts";
import type { Decision } from "../decision/decision.ts";
import { degradedDecision } from "../decision/uncounted-decision.ts";
import { LocalCounters } from "../failing/local-counters.ts";
import { resolveLocal } from "../failing/resolve-local.ts";
import { isRefused, type Resolution } from "../match/resolve.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { type DecisionMaker, shadowRefusals } from "./decision-maker.ts";
import { createTakeOptions } from "./take-options.ts";

/** Decides while the counters are unavailable, as the policies say for that case (`on_failure`). */
export class OutageDecisions {
  readonly #clock: Clock;
  readonly #decisions: DecisionMaker;
  /** For policies that fail `local`. Created in the first outage. */
  #local: LocalCounters | undefined;

  constructor(clock: Clock, decisions: DecisionMaker) {
    this.#clock = clock;
    this.#decisions = decisions;
  }

  /**
   * A request that is denied by name stays denied, whatever the policies say: no counter has to be asked for that. Else
   * a policy that fails closed denies. Otherwise policies that fail local are decided by this node's own counters, all
   * or nothing, and the rest pass. A caller's mistake stays an error, and is thrown.
   */
  decide(request: CheckRequest, resolution: Resolution, error: unknown): Decision {
    const degraded = outageReason(error);
    if (isRefused(resolution.refusals)) return this.#decisions.decide(request, resolution, undefined);
    const local = resolveLocal(resolution);
    let shadow = shadowRefusals(resolution.refusals);
    if (local.limits.length + local.refusals.length > 0) {
      const { limits } = local;
      const refusals = [...resolution.refusals, ...local.refusals];
      const asking = limits.length > 0 && !isRefused(refusals);
      const answer = asking ? this.#ask(request, limits) : undefined;
      const decision = this.#decisions.decide(request, { ...resolution, limits, refusals }, answer);
      if (!decision.allowed) return { ...decision, degraded };
      if (decision.reason !== "unlimited") return { ...decision, reason: "degraded", degraded };
      // Only shadow policies have local limits here.
      shadow = decision.shadow;
    }
    return degradedDecision(request, resolution.limits, degraded, shadow);
  }

  give(receipt: Receipt): boolean {
    return this.#local?.give(receipt) ?? false;
  }

  charge(limits: readonly ResolvedLimit[]): void {
    this.#counters().charge(limits);
  }

  reset(limits: readonly ResolvedLimit[]): void {
    this.#local?.reset(limits);
  }

  #ask(request: CheckRequest, limits: readonly ResolvedLimit[]): TakeAnswer {
    const counters = this.#counters();
    return request.preview === true
      ? counters.peek(limits, request)
      : counters.take(limits, createTakeOptions(request, limits, false));
  }

  #counters(): LocalCounters {
    this.#local ??= new LocalCounters(this.#clock);
    return this.#local;
  }
}
