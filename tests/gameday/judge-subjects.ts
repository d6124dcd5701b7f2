import { ManualClock, MemoryCounters } from "sluice";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { judgeSteadyOvershoot } from "../leases/judge-overshoot.ts";
import { isAdmitted, type Sent } from "./paced-traffic.ts";

/** A limit that refills at so many a second, up to a burst, and by how much leases may exceed it. */
export interface SubjectLimit {
  readonly perSecond: number;
  readonly burst: number;
  readonly allowance: number;
}

/** The default of policies: `max_overshoot` is 1 %. */
export function limitOf(perSecond: number, burst: number = perSecond): SubjectLimit {
  return { perSecond, burst, allowance: Math.floor(0.01 * perSecond) };
}

/** How much a subject got beyond burst + rate × time + allowance in its worst stretch of time. 0: the bound was held. */
export function beyondBound(sent: readonly Sent[], { perSecond, burst, allowance }: SubjectLimit): number {
  const admissions = sent
    .filter(isAdmitted)
    .map(({ startedMs, settledMs }) => ({ fromMs: startedMs, toMs: settledMs!, cost: 1 }));
  const eras = [{ sinceMs: 0, limit: perSecond, burst, allowance }];
  const { beyond } = judgeSteadyOvershoot(admissions, { kind: "arrival", perMs: 1000, originMs: 0, eras });
  return Math.max(0, Math.ceil(beyond));
}

/** How much of what one counter would have admitted, asked at the same moments, a subject was allowed. */
export function shareOfExact(sent: readonly Sent[], { perSecond, burst }: SubjectLimit): number {
  const [first] = sent;
  if (first === undefined) return 1;
  const clock = new ManualClock(1_800_000_000_000, 0);
  const counters = new MemoryCounters({ clock });
  const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(perSecond, 1000, burst)] });
  let nowMs = first.startedMs;
  let exact = 0;
  for (const { startedMs } of sent) {
    clock.advance(Math.max(0, startedMs - nowMs));
    nowMs = Math.max(nowMs, startedMs);
    if (counters.take([resolvedLimit(limit, "subject")]).taken) exact += 1;
  }
  return sent.filter(({ allowed }) => allowed).length / Math.max(exact, 1);
}
