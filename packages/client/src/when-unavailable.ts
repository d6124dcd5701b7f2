import {
  type CheckRequest,
  type CounterStore,
  createLimiter,
  type Decision,
  type Limiter,
  type LimiterOptions,
  type OneLimit,
  StoreUnavailable,
} from "sluice";
import { outageDecision } from "sluice/internal";
import type { Receipt, StoreUnavailableReason } from "sluice/store";
import { invalidRequest } from "./invalid-request.ts";

/** Decides in place of a server: a decision, or whether the request is allowed. */
export type DecideInstead = (
  request: CheckRequest,
  reason: StoreUnavailableReason,
) => Decision | boolean | Promise<Decision | boolean>;

/**
 * How a check is answered while no server answers: everything passes, nothing passes, a limiter in this process decides
 * (`local`), or a function does.
 */
export type WhenUnavailable = "open" | "closed" | "local" | DecideInstead;

/**
 * The local decision: a limit or a limiter; or policies, each of which applies its `on_failure`, with its `local_share`
 * or `local_limits`, as if its counters were unavailable.
 */
export type LocalLimits = OneLimit | Pick<Limiter, "check" | "charge" | "give"> | Pick<LimiterOptions, "policies">;

type LocalLimiter = Pick<Limiter, "check" | "charge" | "give">;

/** The behaviour while no server answers. */
export interface Stopgap {
  check(request: CheckRequest, reason: StoreUnavailableReason): Decision | Promise<Decision>;
  /** Undefined if nothing in this process can be charged. */
  readonly charge: ((request: CheckRequest, reason: StoreUnavailableReason) => Promise<undefined>) | undefined;
  /** Whether a receipt is from this process. */
  issued(receipt: Receipt): boolean;
  give(receipt: Receipt): Promise<boolean>;
}

/** Receipts of this process, which servers do not know. */
const localReceipt = "local:";

export function createStopgap(whenUnavailable: WhenUnavailable, local: LocalLimits | undefined): Stopgap {
  const limiter = local === undefined ? undefined : localLimiterFrom(local);
  if (whenUnavailable === "local" && limiter === undefined)
    throw invalidRequest("local", 'must be given if whenUnavailable is "local": a limit, a limiter, or { policies }');
  if (whenUnavailable !== "local" && limiter !== undefined)
    throw invalidRequest("local", 'is used only if whenUnavailable is "local"');

  async function decideLocally(asked: CheckRequest, reason: StoreUnavailableReason): Promise<Decision> {
    const decision = await limiter!(reason).check(asked);
    const receipt = decision.receipt === undefined ? undefined : localReceipt + decision.receipt;
    return { ...decision, degraded: reason, receipt };
  }

  async function decideInstead(
    decide: DecideInstead,
    request: CheckRequest,
    reason: StoreUnavailableReason,
  ): Promise<Decision> {
    const decided = await decide(request, reason);
    if (typeof decided === "boolean") return outageDecision(request, decided, reason);
    if (typeof decided?.allowed !== "boolean")
      throw invalidRequest("whenUnavailable", "must return true, false or a decision");
    return { ...decided, degraded: reason };
  }

  return {
    check(request, reason) {
      if (typeof whenUnavailable === "function") return decideInstead(whenUnavailable, request, reason);
      if (limiter !== undefined) return decideLocally(request, reason);
      return outageDecision(request, whenUnavailable === "open", reason);
    },
    charge:
      limiter &&
      (async (request, reason) => {
        await limiter(reason).charge(request);
        return undefined;
      }),
    issued: (receipt) => limiter !== undefined && receipt.startsWith(localReceipt),
    async give(receipt) {
      return limiter === undefined ? false : limiter("storage_unavailable").give(receipt.slice(localReceipt.length));
    },
  };
}

const outages: Readonly<Record<StoreUnavailableReason, string>> = {
  storage_unavailable: "no Sluice server is available",
  storage_timeout: "no Sluice server answered in time",
  process_starved: "this process was too busy to read a Sluice server's answer in time",
  storage_overloaded: "too many questions are waiting for a Sluice server",
  storage_full: "the counters of Sluice have no room for another subject",
};

/** The error with which `give`, `charge` and `reset` reject. */
export function unanswered(reason: StoreUnavailableReason, mayBeDone: boolean): StoreUnavailable {
  if (!mayBeDone) return new StoreUnavailable(reason, `${outages[reason]}; nothing was done`);
  const outage = reason === "storage_unavailable" ? "the answer of a Sluice server was lost" : outages[reason];
  return new StoreUnavailable(reason, `${outage}; the request may have been done anyway`);
}

function localLimiterFrom(local: LocalLimits): (reason: StoreUnavailableReason) => LocalLimiter {
  if (typeof local === "object" && local !== null) {
    if ("limiter" in local) return () => local.limiter;
    if ("check" in local) return () => local;
    if ("policies" in local && local.policies !== undefined) return createAlwaysFailing(local);
  }
  throw invalidRequest("local", "must be a limit, a limiter, or { policies }");
}

/** A limiter whose counters are never available, so that its policies apply their `on_failure`. */
function createAlwaysFailing({
  policies,
}: Pick<LimiterOptions, "policies">): (reason: StoreUnavailableReason) => LocalLimiter {
  let away: StoreUnavailableReason = "storage_unavailable";
  const refuse = (): Promise<never> => Promise.reject(new StoreUnavailable(away));
  // A failed take becomes a decision, and its error is not shown: one error for all, because creating one takes longer
  // than deciding.
  const untaken: { [Reason in StoreUnavailableReason]?: StoreUnavailable } = {};
  const counters: CounterStore = {
    local: false,
    distinct: true,
    take() {
      untaken[away] ??= new StoreUnavailable(away);
      return Promise.reject(untaken[away]);
    },
    peek: refuse,
    give: () => false,
    charge: refuse,
    block: refuse,
    reset: refuse,
    read: refuse,
    close: () => undefined,
  };
  const limiter = createLimiter({ ...(policies !== undefined && { policies }), counters, previewCacheMs: 0 });
  return (reason) => {
    away = reason;
    return limiter;
  };
}
