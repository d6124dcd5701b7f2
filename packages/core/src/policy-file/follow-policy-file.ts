import { statSync } from "node:fs";
import type { Limiter, SnapshotInfo } from "../limiter.ts";
import { policyFile } from "./policy-file.ts";

export interface FollowOptions {
  /** How often to look. Absent: 1 s. */
  readonly everyMs?: number | undefined;
  /** Told when changed policies are in use. */
  readonly onChange?: ((snapshot: SnapshotInfo) => void) | undefined;
  /** Told why changed policies are not used: those from before stay. */
  readonly onProblem?: ((error: unknown) => void) | undefined;
}

export interface PolicyFollower {
  /** Stops looking. */
  close(): void;
}

/**
 * Takes up a policy file when it has changed and is good; a bad one changes nothing. Looks by name, so a file
 * that is replaced, or a symbolic link that is turned, is seen too. Does not keep the process running.
 */
export function followPolicyFile(limiter: Limiter, path: string, options: FollowOptions = {}): PolicyFollower {
  const { everyMs = 1000, onChange, onProblem } = options;
  let seen: string | undefined;
  let read: string | undefined;
  const look = (): void => {
    const found = readStamp(path);
    // Read when it has been quiet for one look, so that nobody is limited by half a file.
    const quiet = found === seen;
    seen = found;
    if (!quiet || found === read) return;
    read = found;
    try {
      const policies = policyFile(path);
      // Touched, or read already by who made the limiter.
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
