import type {
  CounterStore,
  HoldAnswer,
  HoldId,
  HoldStore,
  ResolvedLimit,
  TakeAnswer,
} from "../counters/counter-store.ts";
import { orUnavailable } from "../counters/store-unavailable.ts";
import type { Decision } from "../decision/decision.ts";
import { type Problem, SluiceError } from "../errors.ts";
import type { CommitOptions, Hold, ReserveRequest } from "../hold.ts";
import { isRefused, type Resolution } from "../match/resolve.ts";
import { defaultHoldTtlMs, defaultIdTtlMs, maxHoldAmount, maxHoldTtlMs } from "../policy/bounds.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { renderFingerprint } from "./take-options.ts";

/** What holds need of a limiter. */
export interface HoldChecksOptions {
  readonly counters: CounterStore;
  resolve(request: CheckRequest): Resolution;
  decide(request: CheckRequest, resolution: Resolution, answer: TakeAnswer | undefined): Decision;
  decideOutage(request: CheckRequest, resolution: Resolution, error: unknown): Decision;
  /** The decision that is forced on every request, if there is one. */
  decideForced(request: CheckRequest): Decision | undefined;
  /** Counters are about to change. */
  onChange(): void;
}

/** Holds: reserved like a check that may be undone, settled by their id alone. */
export class HoldChecks {
  readonly #options: HoldChecksOptions;

  constructor(options: HoldChecksOptions) {
    this.#options = options;
  }

  async reserve(request: ReserveRequest): Promise<Hold> {
    const { counters, resolve, decide, decideOutage, decideForced } = this.#options;
    checkAmounts(request);
    this.#findStore();
    const { amount, estimate, ttlMs = defaultHoldTtlMs } = request;
    const { domain, dimensions, policies, limits, id, deadlineMs, details } = request;
    const asked: CheckRequest = { domain, dimensions, policies, limits, id, deadlineMs, details };
    const resolution = resolve(asked);
    const cost = amount ?? estimateFor(estimate, resolution.limits);
    const check: CheckRequest = { ...asked, cost };
    const held = { ...resolution, limits: resolution.limits.map((limit) => ({ ...limit, cost })) };
    const forced = decideForced(check);
    if (forced !== undefined) return new HeldRequest(this, forced, cost);
    if (held.limits.length === 0 || isRefused(held.refusals))
      return new HeldRequest(this, decide(check, held, undefined), cost);
    this.#options.onChange();
    try {
      const answer = await counters.take(held.limits, {
        id,
        idTtlMs: Math.max(defaultIdTtlMs, ttlMs),
        fingerprint: id === undefined ? undefined : `hold\n${renderFingerprint(held.limits)}`,
        receipt: true,
        holdMs: ttlMs,
        deadlineMs,
        details,
      });
      const decision = decide(check, held, { ...answer, receipt: undefined });
      if (answer.receipt === undefined) return new HeldRequest(this, decision, cost);
      return new HeldRequest(this, decision, cost, answer.receipt, Math.round(answer.atMs + ttlMs));
    } catch (error) {
      const decision = decideOutage(check, held, error);
      return new HeldRequest(this, decision, cost, undefined, undefined, held.limits);
    }
  }

  async commit(id: HoldId, actual: number, { last = true }: CommitOptions = {}): Promise<HoldAnswer> {
    if (!isCount(actual, 0, maxHoldAmount)) throw invalid("actual", `from 0 to ${maxHoldAmount}`, actual);
    return this.#settle(id, (store) => store.commit(id, actual, last));
  }

  /** Settles by what was reported so far. */
  cancel(id: HoldId): Promise<HoldAnswer> {
    return this.#settle(id, (store) => store.commit(id, 0, true));
  }

  async extend(id: HoldId, ttlMs: number): Promise<HoldAnswer> {
    if (!isCount(ttlMs, 1, maxHoldTtlMs)) throw invalid("ttlMs", `from 1 to ${maxHoldTtlMs}`, ttlMs);
    return this.#settle(id, (store) => store.extend(id, ttlMs));
  }

  /** Charges what was let through without counters. */
  async charge(limits: readonly ResolvedLimit[], cost: number): Promise<void> {
    if (!isCount(cost, 0, maxHoldAmount)) throw invalid("actual", `from 0 to ${maxHoldAmount}`, cost);
    if (cost === 0) return;
    this.#options.onChange();
    await orUnavailable(() => this.#options.counters.charge(limits.map((limit) => ({ ...limit, cost }))));
  }

  async #settle(id: unknown, ask: (store: HoldStore) => HoldAnswer | Promise<HoldAnswer>): Promise<HoldAnswer> {
    if (typeof id !== "string") {
      const message = "must be the id of a hold, as text";
      throw new SluiceError("invalid_request", `id ${message}`, [{ path: ["id"], message }]);
    }
    const store = this.#findStore();
    this.#options.onChange();
    return orUnavailable(() => ask(store));
  }

  #findStore(): HoldStore {
    const { holds } = this.#options.counters;
    if (holds === undefined)
      throw new SluiceError("not_holdable", "these counters keep no holds; use check and charge");
    return holds;
  }
}

class HeldRequest implements Hold {
  readonly #checks: HoldChecks;
  readonly decision: Decision;
  readonly amount: number;
  readonly id: HoldId | undefined;
  readonly expiresAtMs: number | undefined;
  /** The limits of a request that was decided without their counters. */
  readonly #uncounted: readonly ResolvedLimit[];
  #settled: Promise<HoldAnswer | undefined> | undefined;

  constructor(
    checks: HoldChecks,
    decision: Decision,
    amount: number,
    id?: HoldId,
    expiresAtMs?: number,
    uncounted: readonly ResolvedLimit[] = [],
  ) {
    this.#checks = checks;
    this.decision = decision;
    this.amount = amount;
    this.id = id;
    this.expiresAtMs = expiresAtMs;
    this.#uncounted = uncounted;
  }

  settle(actual: number): Promise<HoldAnswer | undefined> {
    this.#settled ??= this.#settle(actual).catch((error: unknown) => {
      this.#settled = undefined;
      throw error;
    });
    return this.#settled;
  }

  async #settle(actual: number): Promise<HoldAnswer | undefined> {
    if (this.id === undefined && this.decision.allowed && this.#uncounted.length > 0)
      await this.#checks.charge(this.#uncounted, actual);
    return this.commit(actual);
  }

  async commit(actual: number, options?: CommitOptions): Promise<HoldAnswer | undefined> {
    return this.id === undefined ? undefined : this.#checks.commit(this.id, actual, options);
  }

  async extend(ttlMs: number): Promise<HoldAnswer | undefined> {
    return this.id === undefined ? undefined : this.#checks.extend(this.id, ttlMs);
  }

  async cancel(): Promise<HoldAnswer | undefined> {
    return this.id === undefined ? undefined : this.#checks.cancel(this.id);
  }
}

/** An amount that the caller does not insist on: at most what the smallest enforced limit ever holds. */
function estimateFor(estimate: number | undefined, limits: readonly ResolvedLimit[]): number {
  let wanted = estimate ?? 1;
  if (estimate === undefined) for (const { cost } of limits) wanted = Math.max(wanted, cost);
  for (const { limit, windows, group } of limits)
    if (group === 0 && limit.distinct === undefined)
      for (const { capacity } of windows) wanted = Math.min(wanted, Math.floor(capacity));
  return Math.max(wanted, 1);
}

function checkAmounts({ amount, estimate, ttlMs }: ReserveRequest): void {
  const problems: Problem[] = [];
  const expect = (field: string, value: number | undefined, most: number): void => {
    if (value === undefined || isCount(value, 1, most)) return;
    problems.push({ path: [field], message: `must be a whole number from 1 to ${most}, not ${String(value)}` });
  };
  expect("amount", amount, maxHoldAmount);
  expect("estimate", estimate, maxHoldAmount);
  expect("ttlMs", ttlMs, maxHoldTtlMs);
  if (amount !== undefined && estimate !== undefined)
    problems.push({ path: ["estimate"], message: "cannot be combined with amount: one or the other is held" });
  if (problems.length === 0) return;
  const message = problems.map((problem) => `${problem.path.join(".")} ${problem.message}`).join("; ");
  throw new SluiceError("invalid_request", message, problems);
}

function isCount(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}

function invalid(field: string, wanted: string, value: unknown): SluiceError {
  const message = `must be a whole number ${wanted}, not ${String(value)}`;
  return new SluiceError("invalid_request", `${field} ${message}`, [{ path: [field], message }]);
}
