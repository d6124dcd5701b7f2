import type { ResolvedLimit } from "../counters/counter-store.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import { chargeOnce } from "../match/charge-once.ts";
import { compileWindow } from "../match/compile-limit.ts";
import type { Candidate } from "../match/compiled-policy.ts";
import type { Refusal, Resolution } from "../match/resolve.ts";
import { type Asked, resolveLimits } from "../match/resolve-limits.ts";
import { divideWindow } from "../policy/divide-window.ts";
import type { Policy, Window } from "../policy/policy.ts";
import { windowLabel, withLabel } from "../policy/window-label.ts";
import { readDimension } from "../request/read-dimension.ts";

/** What decides a request on this node alone. */
export interface LocalResolution {
  readonly limits: readonly ResolvedLimit[];
  readonly refusals: readonly Refusal[];
}

const nothing: LocalResolution = { limits: [], refusals: [] };

/**
 * The limits that stand in while a request's counters are unavailable, for policies that fail `local`: their
 * `local_limits`, or a share of their limits. None if an enforced policy fails closed: that decides on its own.
 */
export function resolveLocal({
  limits,
  candidates,
  asked,
}: Pick<Resolution, "limits" | "candidates" | "asked">): LocalResolution {
  let local: ResolvedLimit[] | undefined;
  const refusals: Refusal[] = [];
  let last: Policy | undefined;
  for (const resolved of limits) {
    const { limit, subject, cost, value, group } = resolved;
    const { policy } = limit;
    if (policy.onFailure === "closed" && group === 0) return nothing;
    if (policy.onFailure !== "local") continue;
    local ??= [];
    if (policy.localLimits === undefined) {
      const windows = resolved.windows.map((window) => findShare(limit, window));
      local.push({ limit, windows, subject, cost, value, group });
    } else if (policy !== last) {
      // Limits of one policy follow each other: its local limits stand in for all of them, once.
      const candidate = candidates.find((one) => one.policy.policy === policy)!;
      const lacking = resolveReadable(local, candidate, asked, cost, group);
      if (lacking !== undefined)
        refusals.push({
          policy: candidate.policy,
          reason: "missing_dimension",
          scope: lacking.scope,
          enforced: group === 0,
        });
    }
    last = policy;
  }
  return local === undefined ? nothing : { limits: chargeOnce(local), refusals };
}

/**
 * The policy's own limits may never have read the dimensions of its local ones: a value that cannot be read counts as
 * missing. An outage makes no request invalid.
 */
function resolveReadable(
  to: ResolvedLimit[],
  { policy: { localLimits }, paths }: Candidate,
  asked: Asked,
  cost: number,
  group: number,
): CompiledLimit | undefined {
  const before = to.length;
  try {
    return resolveLimits(to, localLimits, asked, paths, cost, group);
  } catch {
    to.length = before;
    const names = Object.keys(asked.dimensions).filter((name) => isReadable(asked, name));
    const dimensions = Object.fromEntries(names.map((name) => [name, asked.dimensions[name]!]));
    return resolveLimits(to, localLimits, { ...asked, dimensions }, paths, cost, group);
  }
}

function isReadable({ dimensions, ipv6PrefixBits }: Asked, name: string): boolean {
  try {
    readDimension({ [name]: dimensions[name]! }, name, ipv6PrefixBits);
    return true;
  } catch {
    return false;
  }
}

/** Several limits may share a window, if a subject has it for all of them. */
const shares = new WeakMap<CompiledLimit, WeakMap<Window, CompiledWindow>>();

function findShare(limit: CompiledLimit, { source, identity }: CompiledWindow): CompiledWindow {
  let byWindow = shares.get(limit);
  if (byWindow === undefined) {
    byWindow = new WeakMap();
    shares.set(limit, byWindow);
  }
  let share = byWindow.get(source);
  if (share?.identity !== identity) {
    const { algorithm } = limit.source;
    const part = withLabel(divideWindow(source, algorithm, limit.policy.localShare), windowLabel(source));
    share = compileWindow(part, limit.source, identity);
    byWindow.set(source, share);
  }
  return share;
}
