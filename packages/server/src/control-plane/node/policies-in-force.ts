import type { Limiter, PolicySet } from "sluice";
import type { SnapshotInfo } from "sluice/internal";
import type { Logger } from "../../observe/telemetry/logger.ts";
import {
  type MergedPolicies,
  mergePolicies,
  type Overridden,
  type Precedence,
  renderOverridden,
} from "../documents/merge-policies.ts";

/** The policies that the limiter decides by: from files, from the store, or from both. */
export interface PoliciesInForce {
  /** Applies other policies from files. Throws if the limiter cannot use them, and then changes nothing. */
  useFiles(policySet: PolicySet): SnapshotInfo;
  /**
   * The same for the store. `compose` makes its policies, which may refer to those of files, and is called again when
   * those change.
   */
  useStored(compose: (files: PolicySet) => PolicySet): SnapshotInfo;
  /** Objects that both have, so that only one of the two is in force. */
  readonly overridden: readonly Overridden[];
  /** The policies of the files. */
  readonly files: PolicySet;
}

export interface PoliciesInForceOptions {
  readonly limiter: Pick<Limiter, "usePolicies" | "snapshot">;
  /** The policies that the limiter already uses. */
  readonly files: PolicySet;
  readonly precedence: Precedence;
  readonly log: Logger;
  /** Called with every set that was applied. */
  readonly onUsed: (policySet: PolicySet) => void;
}

export function createPoliciesInForce(options: PoliciesInForceOptions): PoliciesInForce {
  const { limiter, precedence, log, onUsed } = options;
  let { files } = options;
  let stored: Compose | undefined;
  let overridden: readonly Overridden[] = [];
  /** Overlaps that have been logged, so that each is logged once. */
  let reported: ReadonlySet<string> = new Set();

  function use(nextFiles: PolicySet, nextStored: Compose | undefined): SnapshotInfo {
    const merged: MergedPolicies =
      nextStored === undefined
        ? { policySet: nextFiles, overridden: [] }
        : mergePolicies(nextFiles, nextStored(nextFiles), precedence);
    const applied = limiter.usePolicies(merged.policySet);
    files = nextFiles;
    stored = nextStored;
    overridden = merged.overridden;
    logOverlaps();
    onUsed(merged.policySet);
    return applied;
  }

  function logOverlaps(): void {
    const now = new Set(overridden.map(renderOverridden));
    const fresh = overridden.filter((one) => !reported.has(renderOverridden(one)));
    reported = now;
    if (fresh.length === 0) return;
    const policies = fresh.filter(({ kind }) => kind !== "subject").map(renderOverridden);
    const subjects = fresh.length - policies.length;
    log.warn(precedence === "files" ? "policies.files_win" : "policies.store_wins", {
      policies: policies.slice(0, maxLogged),
      count: fresh.length,
      ...(subjects > 0 ? { subjects } : undefined),
    });
  }

  return {
    useFiles: (policySet) => use(policySet, stored),
    useStored: (compose) => use(files, compose),
    get overridden(): readonly Overridden[] {
      return overridden;
    },
    get files(): PolicySet {
      return files;
    },
  };
}

type Compose = (files: PolicySet) => PolicySet;

const maxLogged = 20;
