import { statSync } from "node:fs";
import type { Limiter, SnapshotInfo } from "../limiter.ts";
import { policyFile } from "./policy-file.ts";

export interface FollowOptions {
  /** How often to check for changes. Absent: 1 s. */
  readonly everyMs?: number | undefined;
  /** Called when changed policies are in use. */
  readonly onChange?: ((snapshot: SnapshotInfo) => void) | undefined;
  /** Called if changed policies cannot be used: the previous ones stay. */
  readonly onProblem?: ((error: unknown) => void) | undefined;
}

export interface PolicyFollower {
  /** Stops following. */
  close(): void;
}

/**
 * Applies a policy file when it has changed and is valid; an invalid one changes nothing. It is found by name, so a
 * replaced file or a redirected symbolic link is noticed too. Does not keep the process running.
 */
export function followPolicyFile(limiter: Limiter, path: string, options: FollowOptions = {}): PolicyFollower {
  const { everyMs = 1000, onChange, onProblem } = options;
  let seen: string | undefined;
  let read: string | undefined;
  const look = (): void => {
    const found = readStamp(path);
    // Read after one quiet interval, so that a half-written file is never applied.
    const quiet = found === seen;
    seen = found;
    if (!quiet || found === read) return;
    read = found;
    try {
      const policies = policyFile(path);
      // Touched, or read already by the code that created the limiter.
      if (JSON.stringify(policies) === JSON.stringify(limiter.snapshot.policySet)) return;
      limiter.usePolicies(policies);
    } catch (error) {
      onProblem?.(error);
      return;
    }
    onChange?.(limiter.snapshot);
  };
  const timer = setInterval(look, everyMs).unref();
  return { close: () => clearInterval(timer) };
}

/** Changes whenever the file may have changed. */
function readStamp(path: string): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? "" : `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}:${found.ctimeNs}`;
}
