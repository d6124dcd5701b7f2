import { type CheckRequest, type LeaseGrant, type Limiter, type SettledGrant, SluiceError } from "sluice";
import { epochMs as epochLengthMs, ledgerMarginMs } from "sluice/store";
import type { Metrics } from "../../observe/telemetry/metrics.ts";
import type { Caller } from "../access/access.ts";
import { UntrustedGrants } from "./untrusted-grants.ts";

/** What a client asks for. */
export interface AskedLease {
  /** Units at most. 0: none, an earlier grant is only settled. */
  readonly want: number;
  /** How long anything of it may be spent, where that is to be less than the server thinks right. */
  readonly holdMs?: number | undefined;
  readonly settled?: SettledGrant | undefined;
}

/** What it is granted, and how long that is good for, counted from before it asked. */
export interface GivenLease extends Pick<LeaseGrant, "granted" | "epoch" | "unspent" | "forgotten" | "decision"> {
  /** Then it is renewed, or given back. */
  readonly leaseMs: number;
  /** How much longer while no server answers. */
  readonly staleMs: number;
}

/** How long grants are good for. */
export interface LeaseTimes {
  readonly leaseMs: number;
  readonly staleMs: number;
}

/** Most units of one call. What is granted is far less: half of what is left of the allowance. */
export const maxWant = 1_000_000;
/** No server holds anything for longer: the bounds of `--lease-time` and `--lease-stale`. */
const longestHoldMs = 60_000 + 3_600_000;
export const usualLeaseTimes: LeaseTimes = { leaseMs: 20_000, staleMs: 60_000 };

/** Of which counters: a check of these fields. */
export type LeasedCheck = Pick<CheckRequest, "domain" | "dimensions" | "policies">;

/**
 * Grants, renews and takes back, for clients that decide by themselves. What a caller returns that may not credit
 * counters is credited up to what such callers were granted here (`UntrustedGrants`).
 *
 * Throws `not_leasable` where that is not to be.
 */
export type Lease = (check: LeasedCheck, asked: AskedLease, caller: Caller) => Promise<GivenLease>;

export interface LeaseOptions {
  readonly limiter: Pick<Limiter, "lease" | "forced">;
  readonly metrics: Pick<Metrics, "countLease">;
  readonly accepting: () => boolean;
  readonly times: LeaseTimes | "off";
  /** What time it is, in epoch milliseconds. Absent: by this machine's clock. */
  readonly epochMs?: (() => number) | undefined;
}

/**
 * Leases pass through to where the counters are, so that there is one ledger of each. A server that stops, or is told how to decide
 * (`Limiter.force`), grants nothing any more, and takes back all the same.
 */
export function createLease({ limiter, metrics, accepting, times, epochMs = Date.now }: LeaseOptions): Lease {
  /** By how much the counters' clock is ahead of this one, as the last answer showed: epochs go by theirs. */
  let aheadMs = 0;
  const untrusted = new UntrustedGrants(epochMs);

  async function ask(check: LeasedCheck, { want, holdMs, settled }: AskedLease): Promise<GivenLease> {
    if (want === 0 && settled === undefined)
      throw wrong("want", "must be at least 1, or something must be settled: else there is nothing to do");
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
 * For how long at least what is kept has to be remembered: whoever never gets the answer holds it for as long as an earlier one said,
 * which may be of a server with longer times. So it goes to an epoch that is no sooner. Half an epoch less leads to the same one, also
 * where the counters' clock is not quite this one's.
 */
function keptForMs(settled: SettledGrant | undefined, nowMs: number): number {
  if (settled === undefined || settled.kept === 0) return 0;
  return Math.min(Math.ceil(settled.epoch - ledgerMarginMs - epochLengthMs / 2 - nowMs), longestHoldMs);
}

function notLeasable(message: string): SluiceError {
  return new SluiceError("not_leasable", `${message}; ask for each check instead`);
}

function wrong(field: string, message: string): SluiceError {
  return new SluiceError("invalid_request", `${field} ${message}`, [{ path: [field], message }]);
}
