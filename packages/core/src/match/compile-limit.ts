import { compileArrival } from "../algorithms/arrival.ts";
import { findCalendar } from "../algorithms/calendar.ts";
import { type Hash64, hashText } from "../counters/hash.ts";
import type { CompiledLimit, CompiledWindow, CounterKind } from "../limits/compiled-limit.ts";
import { limitScope } from "../policy/limit-scope.ts";
import { anything } from "../policy/names.ts";
import type { Algorithm, Limit, Policy, Window } from "../policy/policy.ts";
import { labelWindows, windowLabel } from "../policy/window-label.ts";
import { findParams } from "./endpoint-trie.ts";

const kinds: Record<Algorithm, CounterKind> = {
  gcra: "arrival",
  token_bucket: "arrival",
  leaky_bucket: "arrival",
  fixed_window: "count",
  sliding_window: "sliding",
  sliding_log: "log",
};

const hash: Hash64 = { lo: 0, hi: 0 };
/** Keeps hashes of identities apart from those of subjects. */
const identityKind = 0x1d;

/** Separates the parts of an identity; ids, names and dimensions cannot contain it. */
const between = "|";

/** `owner` is what the limit belongs to: its policy's id, or that of the policy's local limits. */
function limitIdentity(owner: string, limit: Limit): string {
  const named = limit.name ?? `${limit.by.join(",")}:${limit.distinct === undefined ? limit.algorithm : "distinct"}`;
  const identity = `${owner}${between}${named}`;
  // A limit that starts afresh when edited carries its definition in its name.
  const definition = (): string => JSON.stringify([limit.windows, limit.tiers]);
  return limit.onChange === "reset" ? `${identity}${between}${definition()}` : identity;
}

/**
 * What tells the windows of a limit apart: kind, length in milliseconds and name. Windows that agree in all of these
 * are numbered: `arrival:1000`, `arrival:1000#2`, `count:once`, `count:day@Europe/Berlin`, `arrival:1000:per_second`,
 * `distinct user:3600000`.
 */
function windowNames(limit: Limit, windows: readonly Window[]): string[] {
  const seen = new Map<string, number>();
  return windows.map((window) => {
    const { per, name } = window;
    const length = per.kind === "ms" ? `${per.ms}` : per.kind === "never" ? "once" : `${per.unit}@${per.timeZone}`;
    const kind = limit.distinct === undefined ? findKind(window, limit.algorithm) : `distinct ${limit.distinct}`;
    const base = `${kind}:${length}${name === undefined ? "" : `:${name}`}`;
    const times = (seen.get(base) ?? 0) + 1;
    seen.set(base, times);
    return times === 1 ? base : `${base}#${times}`;
  });
}

/** Nothing flows into a window of limit 0: whatever it holds is a one-off quota. */
function isOnce({ per, limit, burst }: Window): boolean {
  return per.kind === "never" || (limit === 0 && burst > 0);
}

function findKind(window: Window, algorithm: Algorithm): CounterKind {
  return isOnce(window) || window.limit === 0 ? "count" : kinds[algorithm];
}

export function compileWindow(
  window: Window,
  { algorithm, distinct }: Pick<Limit, "algorithm" | "distinct">,
  identity: string,
): CompiledWindow {
  const { per } = window;
  const kind = distinct === undefined ? findKind(window, algorithm) : "distinct";
  const perMs = windowLengthMs(window);
  const { intervalMs, fullMs, toleranceMs } =
    kind === "arrival"
      ? compileArrival(window.limit, perMs, window.burst)
      : { intervalMs: 0, fullMs: 0, toleranceMs: 0 };
  hashText(identity, hash, identityKind);
  return {
    source: window,
    kind,
    leaky: algorithm === "leaky_bucket",
    capacity: window.burst,
    perMs,
    intervalMs,
    fullMs,
    toleranceMs,
    furthestMs: toleranceMs,
    calendar: per.kind === "calendar" ? findCalendar(per.unit, per.timeZone) : undefined,
    identity,
    hashLo: hash.lo,
    hashHi: hash.hi,
    charges: true,
  };
}

/** Infinity for a one-off quota; the usual length for days and months of a calendar. */
function windowLengthMs(window: Window): number {
  const { per } = window;
  if (isOnce(window) || per.kind === "never") return Number.POSITIVE_INFINITY;
  return per.kind === "ms" ? per.ms : nominalMs[per.unit];
}

const nominalMs = { day: 24 * 60 * 60 * 1000, month: 30 * 24 * 60 * 60 * 1000 };

/** Windows of a limit, of one of its tiers, or of a subject; `identity` is the limit's. */
export function compileWindows(identity: string, limit: Limit, windows: readonly Window[]): readonly CompiledWindow[] {
  const names = windowNames(limit, windows);
  return windows.map((window, i) => compileWindow(window, limit, `${identity}${between}${names[i]}`));
}

/** Tells windows about the others that charge the same counters. */
export function findReach(
  windows: readonly CompiledWindow[],
  others: readonly CompiledWindow[],
): readonly CompiledWindow[] {
  return windows.map((window) => {
    const same = others.filter(({ identity }) => identity === window.identity);
    const furthestMs = Math.max(window.toleranceMs, ...same.map((one) => one.furthestMs));
    return furthestMs === window.furthestMs ? window : { ...window, furthestMs };
  });
}

export function reachOfAll(limits: readonly CompiledLimit[]): readonly CompiledLimit[] {
  const all = limits.flatMap(({ windows, tiers }) => [...windows, ...[...tiers.values()].flat()]);
  if (all.length === new Set(all.map(({ identity }) => identity)).size) return limits;
  return limits.map((limit) => ({
    ...limit,
    windows: findReach(limit.windows, all),
    tiers: new Map([...limit.tiers].map(([tier, windows]) => [tier, findReach(windows, all)])),
  }));
}

/**
 * Labels the windows of a limit, of one of its tiers, or of a subject, if policy and scope alone would name several:
 * header fields must not give two quotas one name. `limits` are all of the policy's, in order.
 */
export function labelTogether(windows: readonly Window[], limit: Limit, limits: readonly Limit[]): void {
  const scope = limitScope(limit);
  const alike = limits.filter((one) => limitScope(one) === scope);
  if (windows.length < 2 && alike.length < 2) return;
  const earlier = alike
    .slice(0, Math.max(alike.indexOf(limit), 0))
    .flatMap(listWindowLists)
    .flat();
  labelWindows(windows, new Set(earlier.map((window) => windowLabel(window) ?? "")));
}

function listWindowLists({ windows, tiers }: Limit): readonly (readonly Window[])[] {
  return [windows, ...Object.values(tiers).map((tier) => tier.windows)];
}

export function compileLimits(policy: Policy): readonly CompiledLimit[] {
  return compileList(policy, policy.limits, counterOwner(policy), false);
}

/** Whether a policy is the new version of a trial that denies no request. */
export function isLookedAt({ trial }: Policy): boolean {
  return trial?.side === "new" && trial.shadow;
}

/** A version that is only evaluated counts separately: the other version charges the policy's own counters already. */
function counterOwner(policy: Policy): string {
  return isLookedAt(policy) ? `${policy.id}${between}trial` : policy.id;
}

/**
 * Compiles the limits that a request brought along. No policy's id is empty, so they share no policy's counters. A
 * changed window length keeps the counter.
 */
export function compileGivenLimits(policy: Policy): readonly CompiledLimit[] {
  return compileList(policy, policy.limits, `${between}${policy.id}`, false).map((limit) => ({
    ...limit,
    fallback: false,
    windows: limit.windows.map(({ source, kind }) =>
      compileWindow(source, limit.source, `${limit.identity}${between}${kind}`),
    ),
  }));
}

/** Compiles the policy's `local_limits`, which never share counters with its `limits`, whatever either are called. */
export function compileLocalLimits(policy: Policy): readonly CompiledLimit[] {
  return compileList(policy, policy.localLimits ?? [], `${counterOwner(policy)}${between}local`, true);
}

function compileList(
  policy: Policy,
  limits: readonly Limit[],
  owner: string,
  local: boolean,
): readonly CompiledLimit[] {
  const params = findParams(policy.match.endpoint ?? "/");
  const identities = limits.map((limit) => limitIdentity(owner, limit));
  for (const limit of limits) for (const windows of listWindowLists(limit)) labelTogether(windows, limit, limits);
  const compiled = limits.map((limit, i): CompiledLimit => {
    const identity = identities[i]!;
    hashText(`${identity}${between}limit`, hash, identityKind);
    // Its windows are hashed into the same object.
    const { lo: hashLo, hi: hashHi } = hash;
    return {
      policy,
      source: limit,
      identity,
      scope: limitScope(limit),
      fallback: policy.match.domain === anything,
      local,
      sharesIdentity: identities.filter((one) => one === identity).length > 1,
      segments: limit.by.map((dimension) => params.get(dimension) ?? -1),
      distinct:
        limit.distinct === undefined
          ? undefined
          : { dimension: limit.distinct, segment: params.get(limit.distinct) ?? -1 },
      windows: compileWindows(identity, limit, limit.windows),
      tiers: new Map(
        Object.entries(limit.tiers).map(([tier, { windows }]) => [tier, compileWindows(identity, limit, windows)]),
      ),
      blockForMs: limit.blockForMs,
      blockable: limit.blockable || limit.blockForMs > 0,
      hashLo,
      hashHi,
    };
  });
  return reachOfAll(compiled);
}
