import type { Logger } from "./logger.ts";

/** How often policies came near their limits, by policy: counts that only grow. */
export type NearLimits = () => Iterable<NearLimit>;

export interface NearLimit {
  readonly policy: string;
  /** Checks decided, those that found a window over four fifths full, and those denied. */
  readonly checks: number;
  readonly near: number;
  readonly denied: number;
}

export interface CapacitySources {
  readonly nearLimits: NearLimits;
  /** Checks refused at once until now, by reason. */
  readonly shed: () => Readonly<Record<string, number>>;
}

export interface CapacityLog {
  /** Looks now, as it does every minute. */
  look(): void;
  close(): void;
}

const lookEveryMs = 60_000;
/** How long until the same policy is logged again. */
const silentForMs = 10 * 60_000;
/** A smaller share of a policy's checks near its limit is normal. */
const worthTelling = 0.1;
const maxTold = 10;

/**
 * Warns once a minute about checks refused at once, and about policies whose subjects come near their limits: those
 * where a tenth of the last minute's checks found a window over four fifths full. It reads counts that exist anyway, so
 * checks do not pay for it.
 */
export function createCapacityLog(
  { nearLimits, shed }: CapacitySources,
  log: Pick<Logger, "warn">,
  nowMs: () => number = () => performance.now(),
): CapacityLog {
  let before = new Map<string, NearLimit>();
  let shedBefore = shed();
  const toldMs = new Map<string, number>();

  function look(): void {
    lookAtShed();
    lookAtLimits();
  }

  function lookAtShed(): void {
    const now = shed();
    const since = Object.entries(now).flatMap(([reason, checks]) => {
      const more = checks - (shedBefore[reason] ?? 0);
      return more > 0 ? [[reason, more] as const] : [];
    });
    shedBefore = now;
    if (since.length > 0) log.warn("check.shed", Object.fromEntries(since));
  }

  function lookAtLimits(): void {
    const now = new Map<string, NearLimit>();
    const busy: { policy: string; checks: number; near: number; denied: number }[] = [];
    for (const one of nearLimits()) {
      now.set(one.policy, one);
      const then = before.get(one.policy);
      const checks = one.checks - (then?.checks ?? 0);
      const near = one.near - (then?.near ?? 0);
      if (near <= 0 || near < worthTelling * checks) continue;
      if (nowMs() - (toldMs.get(one.policy) ?? -Infinity) < silentForMs) continue;
      toldMs.set(one.policy, nowMs());
      const denied = Math.max(0, one.denied - (then?.denied ?? 0));
      busy.push({ policy: one.policy, checks, near, denied });
    }
    before = now;
    for (const policy of toldMs.keys()) if (!now.has(policy)) toldMs.delete(policy);
    if (busy.length === 0) return;
    busy.sort((a, b) => b.near / b.checks - a.near / a.checks);
    log.warn("check.near_limits", {
      policies: busy.slice(0, maxTold),
      ...(busy.length > maxTold && { more: busy.length - maxTold }),
    });
  }

  const timer = setInterval(look, lookEveryMs).unref();
  return { look, close: () => clearInterval(timer) };
}
