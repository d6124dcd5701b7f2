import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type LimitOptions,
  limit,
  type OneLimit,
  SluiceError,
} from "sluice";

/** What middleware asks: a limiter in this process, or anything elsewhere that answers like one. */
export type AskedLimiter = Pick<Limiter, "check" | "charge" | "give"> &
  Partial<Pick<Limiter, "checkSync" | "counters" | "snapshot" | "subjects">>;

/**
 * The limits of a route or an app: windows in one line (`100/m`, counted by client address), a limit that knows whom it
 * counts (`limit("10/s").by("user")`), a limiter, or what `createLimiter` takes.
 */
export type Limits = string | readonly string[] | OneLimit | AskedLimiter | LimiterOptions;

const oneLineNames = ["name", "counters", "algorithm", "onFailure", "blockFor"] as const;

/** How limits in one line are counted; see `LimitOptions`. A limit or limiter has said so itself. */
export type OneLineOptions = Pick<LimitOptions, (typeof oneLineNames)[number]>;

export function limiterFrom(limits: Limits, options: OneLineOptions): AskedLimiter {
  if (typeof limits === "string" || Array.isArray(limits)) return limit(limits, options).by("ip").limiter;
  if (typeof limits !== "object" || limits === null) {
    throw new SluiceError(
      "invalid_policies",
      `the limits must be a text such as 100/m, a limit, a limiter or policies`,
    );
  }
  for (const name of oneLineNames) {
    if (options[name] === undefined) continue;
    const message = "belongs to limits in one line; say it where the limit or the limiter is made";
    throw new SluiceError("invalid_policies", `${name} ${message}`, [{ path: [name], message }]);
  }
  if ("limiter" in limits) return limits.limiter;
  if ("check" in limits) return limits;
  return createLimiter(limits as LimiterOptions);
}
