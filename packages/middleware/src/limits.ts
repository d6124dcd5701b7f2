import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type LimitOptions,
  limit,
  type OneLimit,
  SluiceError,
} from "sluice";
import { renderDuration } from "sluice/internal";

/** The limiter that middleware calls: one in this process, or a remote one with the same methods. */
export type AskedLimiter = Pick<Limiter, "check" | "charge" | "give"> &
  Partial<Pick<Limiter, "checkSync" | "counters" | "snapshot" | "subjects" | "reserve">>;

/**
 * The limits of a route or an app: windows in one line (`100/m`, counted by client address), a limit with its dimension
 * (`limit("10/s").by("user")`), a limiter, or the options of `createLimiter`.
 */
export type Limits = string | readonly string[] | OneLimit | AskedLimiter | LimiterOptions;

const oneLineNames = ["name", "counters", "algorithm", "onFailure", "blockFor"] as const;

/** How one-line limits are counted; see `LimitOptions`. A limit or limiter has these options already. */
export type OneLineOptions = Pick<LimitOptions, (typeof oneLineNames)[number]>;

export function limiterFrom(limits: Limits, options: OneLineOptions): AskedLimiter {
  if (typeof limits === "string" || Array.isArray(limits)) {
    const { name, counters, algorithm, onFailure, blockFor } = options;
    return limit(limits, { name, counters, algorithm, onFailure, blockFor }).by("ip").limiter;
  }
  refuseNonsense(limits);
  for (const name of oneLineNames) {
    if (options[name] === undefined) continue;
    const message = "applies to one-line limits only; set it where the limit or the limiter is created";
    throw new SluiceError("invalid_policies", `${name} ${message}`, [{ path: [name], message }]);
  }
  if ("limiter" in limits) return limits.limiter;
  if ("check" in limits) return limits;
  return createLimiter(limits as LimiterOptions);
}

/** How other libraries write a window, such as `{ windowMs: 60_000, limit: 100 }` of express-rate-limit. */
interface ForeignWindow {
  readonly windowMs?: unknown;
  readonly timeWindow?: unknown;
  readonly ttl?: unknown;
  readonly limit?: unknown;
  readonly max?: unknown;
}

/** Refuses values that are not `Limits` and would otherwise pass as options of a limiter without policies. */
function refuseNonsense(limits: unknown): void {
  if (typeof limits !== "object" || limits === null) {
    const given = limits === undefined ? "missing" : `of type ${limits === null ? "null" : typeof limits}`;
    throw wrongLimits(`must be a string such as "100/m", a limit, a limiter or policies, but are ${given}`);
  }
  if ("by" in limits && typeof limits.by === "function")
    throw wrongLimits('do not say what they count by; add by, as in limit("100/m").by("ip")');
  if ("limiter" in limits || "check" in limits) {
    refuseNonLimiter("limiter" in limits ? limits.limiter : limits);
    return;
  }
  const { windowMs, timeWindow, ttl, limit: most, max } = limits as ForeignWindow;
  const perMs = windowMs ?? timeWindow ?? ttl;
  if (perMs !== undefined || most !== undefined || max !== undefined)
    throw wrongLimits(`must be a string: ${renderExample(most ?? max, perMs)}; ${dropIns}`);
  const made = limits.constructor?.name;
  if (made !== undefined && made !== "Object" && !("policies" in limits || "counters" in limits))
    throw wrongLimits(`must not be of class ${made}; call it where it is used, as in app.use(rateLimit("100/m"))`);
  if (Object.keys(limits).length === 0)
    throw wrongLimits('are empty; write rateLimit("100/m"), or rateLimit(createLimiter()) for the default policy');
}

const dropIns =
  "to keep these options, import from @sluice/middleware/express-rate-limit, /fastify-rate-limit or /nest-throttler";

function renderExample(most: unknown, perMs: unknown): string {
  const isWhole = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0;
  return isWhole(most) && isWhole(perMs) ? `rateLimit("${most}/${renderDuration(perMs)}")` : 'rateLimit("100/15m")';
}

function refuseNonLimiter(limiter: unknown): void {
  for (const name of ["check", "charge", "give"]) {
    if (typeof (limiter as Record<string, unknown> | null | undefined)?.[name] === "function") continue;
    throw wrongLimits(`must be a limiter, such as createLimiter(…) or connect(…), but it has no method ${name}`);
  }
}

function wrongLimits(message: string): SluiceError {
  return new SluiceError("invalid_policies", `the limits ${message}`, [{ path: ["limits"], message }]);
}
