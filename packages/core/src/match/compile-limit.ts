import { compileArrival } from "../algorithms/arrival.ts";
import { createCalendar } from "../algorithms/calendar.ts";
import { type Hash64, hashText } from "../counters/hash.ts";
import type { Algorithm, Limit, Policy, Window } from "../policy/policy.ts";
import type { CompiledLimit, CompiledWindow, CounterKind } from "./compiled.ts";
import { paramsOf } from "./endpoint-trie.ts";

const kinds: Record<Algorithm, CounterKind> = {
  gcra: "arrival",
  token_bucket: "arrival",
  leaky_bucket: "arrival",
  fixed_window: "count",
  sliding_window: "sliding",
  sliding_log: "log",
};

const hash: Hash64 = { lo: 0, hi: 0 };

/** Separates parts of an identity; ids, names and dimensions are not allowed to hold it. */
const between = "|";

/** The limit's name, else its dimensions: what people see as its scope. */
export function scopeOf(limit: Limit): string {
  return limit.name ?? (limit.by.length === 0 ? "global" : limit.by.join(","));
}

function limitIdentity(policy: Policy, limit: Limit): string {
  const named = limit.name ?? `${limit.by.join(",")}:${limit.algorithm}`;
  const identity = `${policy.id}${between}${named}`;
  // A limit that starts afresh when it is edited carries its windows in its name.
  return limit.onChange === "reset" ? `${identity}${between}${JSON.stringify(limit.windows)}` : identity;
}

/** `1s`, `1s#2` for a second window of that length, `once`, `day@Europe/Berlin`, or the window's own name. */
function windowNames(windows: readonly Window[]): string[] {
  const seen = new Map<string, number>();
  return windows.map(({ name, per }) => {
    const base =
      name ?? (per.kind === "ms" ? `${per.ms}` : per.kind === "never" ? "once" : `${per.unit}@${per.timeZone}`);
    const times = (seen.get(base) ?? 0) + 1;
    seen.set(base, times);
    return times === 1 ? base : `${base}#${times}`;
  });
}

function compileWindow(window: Window, algorithm: Algorithm, identity: string): CompiledWindow {
  const { per } = window;
  // Nothing flows into a window of limit 0: whatever it holds is a one-off quota.
  const once = per.kind === "never" || window.limit === 0;
  const kind: CounterKind = once ? "count" : kinds[algorithm];
  const perMs = once ? Number.POSITIVE_INFINITY : per.kind === "ms" ? per.ms : nominalMs[per.unit];
  const { intervalMs, toleranceMs } =
    kind === "arrival" ? compileArrival(window.limit, perMs, window.burst) : { intervalMs: 0, toleranceMs: 0 };
  hashText(identity, hash);
  return {
    source: window,
    kind,
    leaky: algorithm === "leaky_bucket",
    capacity: window.burst,
    perMs,
    intervalMs,
    toleranceMs,
    calendar: per.kind === "calendar" ? createCalendar(per.unit, per.timeZone) : undefined,
    identity,
    hashLo: hash.lo,
    hashHi: hash.hi,
    charges: true,
  };
}

const nominalMs = { day: 24 * 60 * 60 * 1000, month: 30 * 24 * 60 * 60 * 1000 };

export function compileWindows(policy: Policy, limit: Limit, windows: readonly Window[]): readonly CompiledWindow[] {
  const identity = limitIdentity(policy, limit);
  const names = windowNames(windows);
  return windows.map((window, i) => compileWindow(window, limit.algorithm, `${identity}${between}${names[i]}`));
}

export function compileLimits(policy: Policy): readonly CompiledLimit[] {
  const params = paramsOf(policy.match.endpoint ?? "/");
  const limits = policy.limits.map((limit): CompiledLimit => {
    const identity = limitIdentity(policy, limit);
    hashText(`${identity}${between}block`, hash);
    return {
      policy,
      source: limit,
      identity,
      scope: scopeOf(limit),
      segments: limit.by.map((dimension) => params.get(dimension) ?? -1),
      windows: compileWindows(policy, limit, limit.windows),
      tiers: new Map(
        Object.entries(limit.tiers).map(([tier, { windows }]) => [tier, compileWindows(policy, limit, windows)]),
      ),
      blockForMs: limit.blockForMs,
      blockHashLo: hash.lo,
      blockHashHi: hash.hi,
      failMode: policy.onFailure,
    };
  });
  return chargeSharedCountersOnce(limits);
}

/**
 * Two limits of one policy may share a counter (linting warns of it). Both have to agree, and the slower one, whose
 * cost is worth more time, does the charging: never an extra admission.
 */
function chargeSharedCountersOnce(limits: readonly CompiledLimit[]): readonly CompiledLimit[] {
  const slowest = new Map<string, CompiledWindow>();
  for (const limit of limits) {
    for (const window of limit.windows) {
      const other = slowest.get(window.identity);
      if (other === undefined || window.intervalMs > other.intervalMs) slowest.set(window.identity, window);
    }
  }
  return limits.map((limit) => ({
    ...limit,
    windows: limit.windows.map((window) =>
      slowest.get(window.identity) === window ? window : { ...window, charges: false },
    ),
  }));
}
