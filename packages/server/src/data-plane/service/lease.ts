import { type CheckRequest, type Limiter, SluiceError } from "sluice";
import type { LeaseGrant } from "sluice/internal";
import type { SettledGrant } from "sluice/store";
import { epochMs as epochLengthMs, ledgerMarginMs } from "sluice/store";
import type { Metrics } from "../../observe/telemetry/metrics.ts";
import type { Caller } from "../access/access.ts";
import { UntrustedGrants } from "./untrusted-grants.ts";

/** What a client asks for. */
export interface AskedLease {
  /** Units at most. 0 only settles an earlier grant. */
  readonly want: number;
  /** How long it may be spent, if that is less than the server would allow. */
  readonly holdMs?: number | undefined;
  readonly settled?: SettledGrant | undefined;
}

/** The grant, and how long it is valid, counted from before the client asked. */
export interface GivenLease extends Pick<LeaseGrant, "granted" | "epoch" | "unspent" | "forgotten" | "decision"> {
  /** Then it is renewed, or given back. */
  readonly leaseMs: number;
  /** How much longer while no server answers. */
  readonly staleMs: number;
}

/** How long grants are valid. */
export interface LeaseTimes {
  readonly leaseMs: number;
  readonly staleMs: number;
}

/** The most units of one call. Grants are far smaller: half of what is left of the allowance. */
export const maxWant = 1_000_000;
/** No server holds anything for longer: the bounds of `--lease-time` and `--lease-stale`. */
const longestHoldMs = 60_000 + 3_600_000;
export const usualLeaseTimes: LeaseTimes = { leaseMs: 20_000, staleMs: 60_000 };

/** Names the counters: a check with these fields. */
export type LeasedCheck = Pick<CheckRequest, "domain" | "dimensions" | "policies">;

/**
 * Grants, renews and takes back, for clients that decide on their own. If a caller may not credit counters, what it
 * returns is credited only up to what such callers were granted here (`UntrustedGrants`).
 *
 * Throws `not_leasable` if such checks cannot be leased.
 */
export type GrantLease = (check: LeasedCheck, asked: AskedLease, caller: Caller) => Promise<GivenLease>;

export interface LeaseOptions {
  readonly limiter: Pick<Limiter, "lease" | "forced">;
  readonly metrics: Pick<Metrics, "countLease">;
  readonly accepting: () => boolean;
  readonly times: LeaseTimes | "off";
  /** The time in epoch milliseconds. Absent: this machine's clock. */
  readonly epochMs?: (() => number) | undefined;
}

/**
 * Leases are passed on to the counters, so that each has one ledger. A server that stops, or has its decisions forced
 * (`Limiter.force`), grants nothing more, but still takes back.
 */
export function createLease({ limiter, metrics, accepting, times, epochMs = Date.now }: LeaseOptions): GrantLease {
  /** How far the counters' clock was ahead of this one in the last answer: epochs follow theirs. */
  let aheadMs = 0;
  const untrusted = new UntrustedGrants(epochMs);

  async function ask(check: LeasedCheck, { want, holdMs, settled }: AskedLease): Promise<GivenLease> {
    if (want === 0 && settled === undefined)
      throw invalidLease("want", "must be at least 1, or something must be settled; otherwise there is nothing to do");
    if (want > 0) refuseGrants();
    const { leaseMs, staleMs } = times === "off" ? usualLeaseTimes : times;
    const mostMs = leaseMs + staleMs;
    const heldMs = Math.min(holdMs ?? mostMs, mostMs);
    const rememberedMs = Math.max(heldMs, keptForMs(settled, epochMs() + aheadMs));
    const grant = await limiter.lease(check, { want: Math.min(want, maxWant), holdMs: rememberedMs, settled });
    const { granted, epoch, unspent, forgotten, decision } = grant;
    aheadMs = grant.atMs - epochMs();
    const spentMs = Math.min(leaseMs, heldMs);
    return { granted, epoch, unspent, forgotten, decision, leaseMs: spentMs, staleMs: heldMs - spentMs };
  }

  function refuseGrants(): void {
    if (!accepting())
      throw new SluiceError("not_ready", "this server is stopping and grants no leases; ask another one");
    if (times === "off") throw notLeasable("this server grants no leases");
    if (limiter.forced !== undefined) throw notLeasable("the kill switch is on, and nothing is leased while it is");
  }

  return async (check, asked, caller) => {
    const spent = asked.settled?.spent ?? 0;
    try {
      const isTrusted = caller.may.has("credit");
      const settled = isTrusted ? asked.settled : untrusted.settle(check, asked.settled);
      const given = await ask(check, { ...asked, settled });
      if (!isTrusted) untrusted.note(check, given.granted, given.leaseMs + given.staleMs);
      const outcome = asked.want === 0 ? "settled" : given.granted > 0 ? "granted" : "refused";
      metrics.countLease(outcome, given.decision.policy, spent);
      return given;
    } catch (error) {
      const refused = error instanceof SluiceError && error.code === "not_leasable";
      metrics.countLease(refused ? "not_leasable" : "error", undefined, 0);
      throw error;
    }
  };
}

/**
 * How long kept units must be remembered at least: a client that never gets the answer holds them for as long as an
 * earlier one said, which may be from a server with longer times. So they go to an epoch that is no sooner. Half an
 * epoch less leads to the same one, even if the counters' clock is slightly off.
 */
function keptForMs(settled: SettledGrant | undefined, nowMs: number): number {
  if (settled === undefined || settled.kept === 0) return 0;
  return Math.min(Math.ceil(settled.epoch - ledgerMarginMs - epochLengthMs / 2 - nowMs), longestHoldMs);
}

function notLeasable(message: string): SluiceError {
  return new SluiceError("not_leasable", `${message}; use a check for each request instead`);
}

function invalidLease(field: string, message: string): SluiceError {
  return new SluiceError("invalid_request", `${field} ${message}`, [{ path: [field], message }]);
}
