import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import type { SubjectEntry, SubjectLimit } from "../policy/policy.ts";
import { compileWindows, findReach, labelTogether } from "./compile-limit.ts";
import type { SubjectDirectory } from "./subject-directory.ts";

/** What is known of subjects: set while running, which takes precedence, and written in the policies. */
export interface KnownSubjects {
  readonly running: SubjectDirectory;
  readonly written: SubjectDirectory;
}

/**
 * The windows of the subject's override, else of its tier, else of the tier that the request names, else the limit's
 * own. `values` are those of the limit's dimensions; the last is the most specific. `known` is undefined if no subject
 * is known.
 */
export function findWindows(
  limit: CompiledLimit,
  values: readonly string[],
  requestTier: string,
  known: KnownSubjects | undefined,
  epochMs: () => number,
): readonly CompiledWindow[] {
  const { by } = limit.source;
  for (let i = by.length - 1; known !== undefined && i >= 0; i--) {
    const { running, written } = known;
    const own =
      (running.size === 0 ? undefined : findKnownWindows(running.find(by[i]!, values[i]!), limit, epochMs)) ??
      findKnownWindows(written.find(by[i]!, values[i]!), limit, epochMs);
    if (own !== undefined) return own;
  }
  return limit.tiers.get(requestTier) ?? limit.windows;
}

/** The windows of a limit for a known subject, if its entry has any for this limit. */
function findKnownWindows(
  entry: SubjectEntry | undefined,
  limit: CompiledLimit,
  epochMs: () => number,
): readonly CompiledWindow[] | undefined {
  if (entry === undefined) return undefined;
  for (const own of limit.local ? noLimits : entry.limits) {
    if (own.policy !== limit.policy.id || (own.limit !== undefined && own.limit !== limit.scope)) continue;
    if (own.untilMs === undefined || epochMs() < own.untilMs) return ownWindows(own, limit);
  }
  return entry.tier === undefined ? undefined : limit.tiers.get(entry.tier);
}

const noLimits: readonly SubjectLimit[] = [];
const compiledOwn = new WeakMap<SubjectLimit, Map<CompiledLimit, readonly CompiledWindow[]>>();

function ownWindows(own: SubjectLimit, limit: CompiledLimit): readonly CompiledWindow[] {
  let byLimit = compiledOwn.get(own);
  if (byLimit === undefined) {
    byLimit = new Map();
    compiledOwn.set(own, byLimit);
  }
  let windows = byLimit.get(limit);
  if (windows === undefined) {
    // So that limits of replaced snapshots do not pile up here.
    if (byLimit.size >= 64) byLimit.clear();
    labelTogether(own.windows, limit.source, limit.policy.limits);
    const known = [...limit.windows, ...[...limit.tiers.values()].flat()];
    windows = findReach(compileWindows(limit.identity, limit.source, own.windows), known);
    byLimit.set(limit, windows);
  }
  return windows;
}
