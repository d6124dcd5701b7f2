import type { Algorithm } from "sluice";
import type { Course, JudgedKind } from "./judge-overshoot.ts";

interface LineWindow {
  readonly limit: number;
  readonly perMs: number;
  readonly burst?: number;
}

interface LineLimit {
  readonly by: "user" | "tenant";
  readonly algorithm: Algorithm;
  readonly windows: readonly LineWindow[];
}

/** The endpoints of the traffic, and their limits. */
interface LeasedLine {
  readonly maxOvershoot: number;
  readonly limits: readonly LineLimit[];
}

export const leasedLines: Readonly<Record<string, LeasedLine>> = {
  bucket: {
    maxOvershoot: 0.5,
    limits: [{ by: "user", algorithm: "gcra", windows: [{ limit: 300, perMs: 1000, burst: 60 }] }],
  },
  fixed: {
    maxOvershoot: 0.4,
    limits: [{ by: "user", algorithm: "fixed_window", windows: [{ limit: 200, perMs: 1000 }] }],
  },
  sliding: {
    maxOvershoot: 0.4,
    limits: [{ by: "user", algorithm: "sliding_window", windows: [{ limit: 200, perMs: 1000 }] }],
  },
  several: {
    maxOvershoot: 0.3,
    limits: [
      {
        by: "user",
        algorithm: "token_bucket",
        windows: [
          { limit: 400, perMs: 1000, burst: 80 },
          { limit: 1500, perMs: 5000, burst: 400 },
        ],
      },
    ],
  },
  shared: {
    maxOvershoot: 0.8,
    limits: [
      { by: "user", algorithm: "leaky_bucket", windows: [{ limit: 150, perMs: 1000, burst: 40 }] },
      { by: "tenant", algorithm: "sliding_window", windows: [{ limit: 220, perMs: 1000 }] },
    ],
  },
};

export const users = ["ada", "bob"];
export const tenant = "acme";

export const leasedPolicies: Readonly<Record<string, unknown>> = {
  default: "none",
  policies: Object.entries(leasedLines).map(([line, { maxOvershoot, limits }]) => ({
    id: line,
    match: { endpoint: `/${line}` },
    counters: "leased",
    max_overshoot: maxOvershoot,
    limits: limits.map(({ by, algorithm, windows }) => ({
      by: [by],
      algorithm,
      windows: windows.map(({ limit, perMs, burst }) => ({
        limit,
        per: `${perMs}ms`,
        ...(burst === undefined ? {} : { burst }),
      })),
    })),
    // Only decisions of counters or leases admit.
    on_failure: "closed",
    deadline: "500ms",
  })),
};

/** An admission, as a process recorded it. */
export interface Noted {
  readonly line: string;
  readonly user: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly cost: number;
}

/** One window for one subject, and the admissions that count against it. */
export interface JudgedWindow {
  readonly name: string;
  readonly course: Course;
  readonly counts: (noted: Noted) => boolean;
}

/** All windows to be judged. `originMs` is the epoch time of instant 0. */
export function judgedWindows(originMs: number): JudgedWindow[] {
  return Object.entries(leasedLines).flatMap(([line, { maxOvershoot, limits }]) =>
    limits.flatMap(({ by, algorithm, windows }) => {
      const allowance = Math.floor(maxOvershoot * Math.min(...windows.map(({ limit }) => limit)));
      return windows.flatMap(({ limit, perMs, burst = limit }, index) =>
        (by === "tenant" ? [undefined] : users).map((user): JudgedWindow => {
          const eras = [{ sinceMs: 0, limit, burst, allowance }];
          return {
            name: `${line} by ${user ?? by}, window ${index + 1}`,
            course: { kind: findKind(algorithm), perMs, originMs, eras },
            counts: (noted) => noted.line === line && (user === undefined || noted.user === user),
          };
        }),
      );
    }),
  );
}

function findKind(algorithm: Algorithm): JudgedKind {
  if (algorithm === "fixed_window") return "count";
  return algorithm === "sliding_window" ? "sliding" : "arrival";
}
