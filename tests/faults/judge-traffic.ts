import type { DegradedReason } from "sluice";
import { type Bound, extraBursts, type Line, localBound, probeLines, sharedBounds } from "./fault-policies.ts";
import type { StallMeter } from "./stall-meter.ts";
import type { Checked } from "./traffic.ts";

/** The effect of a fault on counters: none; all of them are gone; or the latest changes are. */
export type Loss =
  | { readonly kind: "none" }
  | { readonly kind: "all" | "latest"; readonly fromMs: number; readonly toMs: number };

export const deadlineMs = 25;
/** Beyond its deadline and the stalls of the process a check may take this long, because machines are busy. */
const noiseMs = 150;
const neverLongerMs = 2000;

export function isAnswered({ decision }: Checked): boolean {
  return decision !== undefined && decision.degraded === undefined;
}

export function isAdmitted(checked: Checked): boolean {
  return isAnswered(checked) && checked.decision!.allowed;
}

export function countDegraded(checks: readonly Checked[]): Record<DegradedReason, number> {
  const counts: Record<DegradedReason, number> = {
    storage_timeout: 0,
    storage_unavailable: 0,
    process_starved: 0,
    storage_overloaded: 0,
    storage_full: 0,
    kill_switch: 0,
  };
  for (const { decision } of checks) if (decision?.degraded !== undefined) counts[decision.degraded] += 1;
  return counts;
}

/** No check hangs, fails, or takes longer than its deadline and the stalls of this process. */
export function judgeLatency(checks: readonly Checked[], meter: StallMeter): { beyondMs: number; breaches: string[] } {
  const breaches: string[] = [];
  let beyondMs = 0;
  const hanging = checks.filter(({ settledMs }) => settledMs === undefined);
  if (hanging.length > 0) breaches.push(`${hanging.length} of ${checks.length} checks were never answered`);
  const failed = checks.filter(({ error }) => error !== undefined);
  if (failed.length > 0) breaches.push(`${failed.length} checks rejected, the first with ${failed[0]!.error}`);
  for (const { startedMs, settledMs, line } of checks) {
    if (settledMs === undefined || settledMs - startedMs <= deadlineMs) continue;
    const tookMs = settledMs - startedMs;
    const beyond = tookMs - deadlineMs - meter.within(startedMs, settledMs);
    if (beyond > noiseMs || tookMs > neverLongerMs) {
      breaches.push(`a check of ${line} took ${tookMs.toFixed(0)} ms, ${beyond.toFixed(0)} ms more than it may`);
    }
    beyondMs = Math.max(beyondMs, beyond);
  }
  return { beyondMs, breaches: breaches.slice(0, 5) };
}

/** How a degraded check is answered is its policy's choice. */
export function judgeFailModes(checks: readonly Checked[]): string[] {
  const degraded = checks.filter(({ decision }) => decision?.degraded !== undefined);
  const allowed = degraded.filter(({ line, decision }) => isClosed(line) && decision?.allowed === true);
  const denied = degraded.filter(({ line, decision }) => line === "tight/open" && decision?.allowed === false);
  return [
    ...(allowed.length === 0 ? [] : [`${allowed.length} checks were let through although their policy fails closed`]),
    ...(denied.length === 0 ? [] : [`${denied.length} checks were turned away although their policy fails open`]),
  ];
}

function isClosed(line: Line): boolean {
  return line === "tight/closed" || probeLines.includes(line);
}

/**
 * What tight limits admitted beyond burst + rate × time, in the worst interval; and whether that is more than lost
 * counters explain, which is one burst.
 */
export function judgeAdmission(
  checks: readonly Checked[],
  findLoss: (user: string) => Loss,
): { overAdmitted: number; breaches: string[] } {
  const breaches: string[] = [];
  let overAdmitted = 0;
  for (const user of new Set(checks.map((one) => one.user))) {
    for (const [line, bound] of Object.entries(sharedBounds) as [Line, Bound][]) {
      const own = checks.filter((one) => one.user === user && one.line === line);
      const over = mostBeyond(own.filter(isAdmitted), bound);
      const explained = findLoss(user).kind === "none" ? 0 : extraBursts[line]!;
      overAdmitted = Math.max(overAdmitted, over);
      if (over > explained) breaches.push(`${line} admitted ${over} for ${user} beyond burst + rate × time`);
      if (line !== "tight/local") continue;
      const locally = own.filter(({ decision }) => decision?.degraded !== undefined && decision.allowed);
      const overLocally = mostBeyond(locally, localBound);
      if (overLocally > 0) breaches.push(`${line} admitted ${overLocally} for ${user} beyond this node's share`);
    }
  }
  return { overAdmitted, breaches };
}

/**
 * The largest excess of any interval, from one admission to another: each happened between its start and its answer, so
 * an interval is at most as long as from the start of the first to the answer of the last.
 */
export function mostBeyond(admitted: readonly Checked[], { burst, perSecond }: Bound): number {
  const inOrder = admitted.toSorted((one, other) => one.startedMs - other.startedMs);
  let most = 0;
  let lowest = Number.POSITIVE_INFINITY;
  inOrder.forEach(({ startedMs, settledMs }, index) => {
    lowest = Math.min(lowest, index - (perSecond * startedMs) / 1000);
    most = Math.max(most, index + 1 - (perSecond * settledMs!) / 1000 - lowest - burst);
  });
  return Math.max(Math.ceil(most - 0.01), 0);
}

export interface Charges {
  readonly charged: number;
  readonly counted: number;
  readonly lost: number;
  readonly breaches: string[];
}

/**
 * A user's charges lie between the admissions and those plus the checks that were sent and never answered. Lost
 * counters hold only what came after.
 */
export function judgeCharges(probes: readonly Checked[], charged: number, loss: Loss): Omit<Charges, "charged"> {
  const admitted = probes.filter(isAdmitted);
  const unanswered = probes.filter((one) => one.asked && !isAnswered(one));
  const sinceLoss = ({ settledMs }: Checked): boolean => loss.kind !== "all" || settledMs! >= loss.fromMs;
  const counted = admitted.filter(({ startedMs }) => loss.kind === "none" || startedMs >= loss.toMs).length;
  const lost = unanswered.filter(sinceLoss).length;
  const most = admitted.filter(sinceLoss).length + lost;
  const breaches: string[] = [];
  const [first] = probes;
  const what = `${first?.line} of ${first?.user}`;
  if (charged < counted) breaches.push(`${what} was charged ${charged} for ${counted} admissions`);
  if (charged > most) breaches.push(`${what} was charged ${charged}, and at most ${most} can be explained`);
  return { counted, lost, breaches };
}
