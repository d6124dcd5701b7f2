import type { Limiter, PolicySet, SnapshotInfo } from "sluice";
import type { Logger } from "../../observe/telemetry/logger.ts";
import {
  type MergedPolicies,
  mergePolicies,
  type Overridden,
  type Precedence,
  renderOverridden,
} from "../documents/merge-policies.ts";

/** What the limiter decides by: policies of files, of the store, or of both. */
export interface PoliciesInForce {
  /** Takes up other policies from files. Throws where the limiter cannot use them, and then changes nothing. */
  useFiles(policySet: PolicySet): SnapshotInfo;
  /**
   * The same for the store. `compose` makes its policies, which may refer to those of files, and is asked again when those have
   * changed.
   */
  useStored(compose: (files: PolicySet) => PolicySet): SnapshotInfo;
  /** What both have, so that only one of them is in force. */
  readonly overridden: readonly Overridden[];
  /** What files have. */
  readonly files: PolicySet;
}

export interface PoliciesInForceOptions {
  readonly limiter: Pick<Limiter, "usePolicies" | "snapshot">;
  /** What the limiter runs on already. */
  readonly files: PolicySet;
  readonly precedence: Precedence;
  readonly log: Logger;
  /** Hears of every set that was taken up. */
  readonly onUsed: (policySet: PolicySet) => void;
}

export function createPoliciesInForce(options: PoliciesInForceOptions): PoliciesInForce {
  const { limiter, precedence, log, onUsed } = options;
  let { files } = options;
  let stored: Compose | undefined;
  let overridden: readonly Overridden[] = [];
  /** What has been told of, so that it is told once. */
  let told: ReadonlySet<string> = new Set();

  function use(nextFiles: PolicySet, nextStored: Compose | undefined): SnapshotInfo {
    const merged: MergedPolicies =
      nextStored === undefined
        ? { policySet: nextFiles, overridden: [] }
        : mergePolicies(nextFiles, nextStored(nextFiles), precedence);
    const taken = limiter.usePolicies(merged.policySet);
    files = nextFiles;
    stored = nextStored;
    overridden = merged.overridden;
    tell();
    onUsed(merged.policySet);
    return taken;
  }

  function tell(): void {
    const now = new Set(overridden.map(renderOverridden));
    const fresh = overridden.filter((one) => !told.has(renderOverridden(one)));
    told = now;
    if (fresh.length === 0) return;
    const policies = fresh.filter(({ kind }) => kind !== "subject").map(renderOverridden);
    const subjects = fresh.length - policies.length;
    log.warn(precedence === "files" ? "policies.files_win" : "policies.store_wins", {
      policies: policies.slice(0, maxTold),
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

const maxTold = 20;
