/** The endpoints of the traffic. */
export const lines = ["probe/arrival", "probe/plan", "tight/closed", "tight/open", "tight/local"] as const;

export type Line = (typeof lines)[number];

/** Lines whose limit is never reached, so that charges can be compared with admissions. */
export const probeLines: readonly Line[] = ["probe/arrival", "probe/plan"];

/** At most `burst + perSecond × seconds` in any stretch of time. */
export interface Bound {
  readonly burst: number;
  readonly perSecond: number;
}

/** The most that tight lines may admit by shared counters; a fixed window has two bursts where two windows meet. */
export const sharedBounds: Partial<Record<Line, Bound>> = {
  "tight/closed": { burst: 10, perSecond: 5 },
  "tight/open": { burst: 20, perSecond: 10 },
  "tight/local": { burst: 10, perSecond: 10 },
};

/** The most that a node admits in addition by local counters: half, by default. */
export const localBound: Bound = { burst: 5, perSecond: 5 };

/** One burst: the most that lost counters may admit again. */
export const extraBursts: Partial<Record<Line, number>> = { "tight/closed": 10, "tight/open": 10, "tight/local": 10 };

// Probes' counters do not refill within a scenario: they gain one a minute, and begin full.
const slowly = [
  { limit: 1, per: "60s", burst: 33_000 },
  { limit: 1, per: "70s", burst: 30_000 },
];

export const faultPolicies: Readonly<Record<string, unknown>> = {
  default: "none",
  policies: [
    {
      id: "probe.arrival",
      match: { endpoint: "/probe/arrival" },
      limits: [{ by: ["user"], windows: slowly.slice(0, 1) }],
      on_failure: "closed",
    },
    {
      id: "probe.plan",
      match: { endpoint: "/probe/plan" },
      limits: [
        { name: "pace", by: ["user"], windows: slowly },
        { name: "quota", by: ["user"], algorithm: "fixed_window", windows: ["1M once"] },
      ],
      on_failure: "closed",
    },
    {
      id: "tight.closed",
      match: { endpoint: "/tight/closed" },
      limits: [{ by: ["user"], windows: ["5/s burst 10"] }],
      on_failure: "closed",
    },
    {
      id: "tight.open",
      match: { endpoint: "/tight/open" },
      limits: [{ by: ["user"], algorithm: "fixed_window", windows: ["10/s"] }],
      on_failure: "open",
    },
    {
      id: "tight.local",
      match: { endpoint: "/tight/local" },
      limits: [{ by: ["user"], windows: ["10/s burst 10", "480/m burst 60"] }],
      on_failure: "local",
    },
  ],
};
