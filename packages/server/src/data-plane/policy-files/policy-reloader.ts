import { setTimeout as pause } from "node:timers/promises";
import { type PolicySet, type Problem, SluiceError, type SnapshotInfo } from "sluice";
import type { ParsedPolicyFiles } from "sluice/policy-text";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { Metrics } from "../../observe/telemetry/metrics.ts";
import { withDeadline } from "../../with-deadline.ts";
import { countPolicies } from "./count-policies.ts";
import { parsePoliciesAside } from "./parse-policies-aside.ts";
import {
  type LoadedPolicies,
  type PolicyFiles,
  type RefusedPolicies,
  readPolicyFiles,
  unreadable,
} from "./policy-files.ts";
import { defaultQuietMs, type WatchOptions, watchPolicyFiles } from "./watch-policy-files.ts";

/** How the policies in force stand to the ones on disk. */
export interface PolicyStatus {
  /** `stale`: what is on disk was refused, and the last good policies are still in force. */
  readonly state: "current" | "stale";
  /** What is wrong on disk; empty while `current`. */
  readonly problems: readonly Problem[];
}

export interface PolicyReloader {
  readonly status: PolicyStatus;
  /** Reads the files again and takes them up if they changed and are good. Never throws. */
  reload(): Promise<void>;
  close(): void;
}

export interface PolicyReloaderOptions {
  readonly path: string;
  /** What the limiter runs on already. */
  readonly loaded: LoadedPolicies;
  /** What was on disk at the start and was refused, so that something older is in force. Absent: nothing. */
  readonly refused?: RefusedPolicies | undefined;
  /** Takes up policies. Throws where it cannot, and then changes nothing. */
  readonly limiter: { usePolicies(policySet: PolicySet): SnapshotInfo };
  readonly log: Logger;
  readonly metrics: Pick<Metrics, "countReload">;
  /** Hears of files that were taken up, for what is in them beside policies, and to keep them. */
  readonly onTakenUp?: (parsed: ParsedPolicyFiles, files: PolicyFiles) => void;
  readonly watch?: WatchOptions;
  /** How files are read. Absent: from disk. */
  readonly read?: (path: string) => Promise<PolicyFiles>;
  /** How long that may take. Absent: 5 s. */
  readonly readWithinMs?: number;
}

/** What a look at the disk found. `seen` is the same exactly when the same was found. */
type Look =
  | { readonly kind: "good"; readonly seen: string; readonly parsed: ParsedPolicyFiles; readonly files: PolicyFiles }
  | { readonly kind: "bad"; readonly seen: string; readonly error: unknown }
  | { readonly kind: "unchanged"; readonly seen: string };

const readWithinMs = 5_000;
/** Who writes without a pause is believed in the end. */
const maxLooks = 10;

/** Keeps a limiter's policies those on disk: watches, reloads, and holds on to the last good ones. */
export async function createPolicyReloader(options: PolicyReloaderOptions): Promise<PolicyReloader> {
  const { path, limiter, log, metrics, refused, read = readPolicyFiles } = options;
  const quietMs = options.watch?.quietMs ?? defaultQuietMs;
  let status: PolicyStatus =
    refused === undefined ? { state: "current", problems: [] } : { state: "stale", problems: refused.problems };
  let inForce = options.loaded.digest;
  /** What was on disk when it was last looked at, good or bad, so that nothing is said twice. */
  let lastSeen: string = refused?.seen ?? inForce;
  let reading: Promise<PolicyFiles> | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  let closed = false;

  function takeUp(parsed: ParsedPolicyFiles, files: PolicyFiles): void {
    const { policySet, warnings } = parsed;
    const { digest } = files;
    // Restoring the very text in force brings nothing new, but it does end being stale.
    const generation = digest === inForce ? undefined : limiter.usePolicies(policySet).generation;
    inForce = digest;
    status = { state: "current", problems: [] };
    metrics.countReload(true);
    options.onTakenUp?.(parsed, files);
    if (generation === undefined) {
      log.info("policies.reload_recovered", { path });
      return;
    }
    log.info("policies.reloaded", { path, generation, policies: countPolicies(policySet) });
    logWarnings(log, path, warnings);
  }

  function refuse(error: unknown): void {
    const known = error instanceof SluiceError && error.code === "invalid_policies";
    const problems = known ? error.problems : [{ path: [], message: `cannot be taken up: ${error}` }];
    status = { state: "stale", problems };
    metrics.countReload(false);
    const told = { path, errors: problems.length, problems: problems.slice(0, maxLogged) };
    log.error("policies.reload_failed", { ...told, ...(known ? {} : { err: error }) });
  }

  const silence = unreadable(path, "cannot be read: the file system does not answer");

  /** Reads within a deadline. A read that hangs is waited for by one thread only, and what it brings is looked at. */
  function readInTime(): Promise<PolicyFiles> {
    reading ??= read(path).finally(() => {
      reading = undefined;
    });
    const work = reading;
    return withDeadline(work, options.readWithinMs ?? readWithinMs, () => {
      void work.then(reload, reload);
      return silence;
    });
  }

  async function look(): Promise<Look> {
    let seen = "";
    try {
      const files = await readInTime();
      seen = files.digest;
      if (seen === lastSeen) return { kind: "unchanged", seen };
      return { kind: "good", seen, parsed: await parsePoliciesAside(files.files), files };
    } catch (error) {
      // An unreadable file has no digest; its reason stands in for one.
      seen ||= String(error);
      return seen === lastSeen ? { kind: "unchanged", seen } : { kind: "bad", seen, error };
    }
  }

  /** What is bad may be a file half written: it is believed when it is still the same after a quiet time. */
  async function lookTwice(): Promise<Look> {
    let found = await look();
    for (let looks = 1; found.kind === "bad" && looks < maxLooks && !closed; looks++) {
      if (found.error === silence) break;
      await pause(quietMs, undefined, { ref: false });
      const later = await look();
      if (later.seen === found.seen) break;
      found = later;
    }
    return found;
  }

  async function reloadOnce(): Promise<void> {
    const found = await lookTwice();
    if (closed) return;
    lastSeen = found.seen;
    if (found.kind === "unchanged") return log.debug("policies.unchanged", { path });
    if (found.kind === "bad") return refuse(found.error);
    try {
      takeUp(found.parsed, found.files);
    } catch (error) {
      refuse(error);
    }
  }

  async function reload(): Promise<void> {
    if (running !== undefined) {
      again = true;
      return running;
    }
    running = (async () => {
      do {
        again = false;
        await reloadOnce();
      } while (again && !closed);
    })().finally(() => {
      running = undefined;
    });
    return running;
  }

  const watch = await watchPolicyFiles(path, () => void reload(), options.watch);
  // What changed between loading and watching is found here.
  await reload();

  return {
    get status(): PolicyStatus {
      return status;
    },
    reload,
    close(): void {
      closed = true;
      watch.close();
    },
  };
}

const maxLogged = 20;

/** Tells of what is legal but surprising, the first few in full. */
export function logWarnings(log: Logger, path: string, warnings: readonly Problem[]): void {
  if (warnings.length === 0) return;
  const problems = warnings.slice(0, maxLogged);
  log.warn("policies.warnings", { path, warnings: warnings.length, problems });
}
