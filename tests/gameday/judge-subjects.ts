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

/** Three subjects that ask for more than their limits, each limited in another way: by GCRA, by a fixed window, and by leases. */
export const limitedThreeWays: {
  readonly subjects: Readonly<Record<string, SubjectLimit>>;
  readonly policies: readonly object[];
  readonly rates: readonly (readonly [subject: string, perSecond: number])[];
} = {
  subjects: {
    paced: { perSecond: 10, burst: 10, allowance: 0 },
    // Its window may be used up at the end of one and at the beginning of the next.
    windowed: { perSecond: 10, burst: 20, allowance: 0 },
    leased: limitOf(1000),
  },
  policies: [
    { id: "paced", match: { user: "paced" }, limits: [{ by: ["user"], windows: ["10/s burst 10"] }] },
    {
      id: "windowed",
      match: { user: "windowed" },
      limits: [{ by: ["user"], algorithm: "fixed_window", windows: ["10/s"] }],
    },
    { id: "leased", match: { user: "leased" }, limits: [{ by: ["user"], windows: ["1000/s"] }] },
  ].map((policy) => ({ ...policy, on_failure: "closed" })),
  rates: [
    ["paced", 25],
    ["windowed", 25],
    ["leased", 1200],
  ],
};

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
