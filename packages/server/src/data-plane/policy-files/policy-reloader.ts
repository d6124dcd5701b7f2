import { setTimeout as pause } from "node:timers/promises";
import { type PolicySet, type Problem, SluiceError } from "sluice";
import type { SnapshotInfo } from "sluice/internal";
import { unreadablePolicies } from "sluice/policy-file";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { Metrics } from "../../observe/telemetry/metrics.ts";
import { withDeadline } from "../../with-deadline.ts";
import { countPolicies } from "./count-policies.ts";
import { parsePoliciesInWorker } from "./parse-policies-in-worker.ts";
import type { ParsedPolicies } from "./parse-served-policies.ts";
import { type LoadedPolicies, type PolicyFiles, type RefusedPolicies, readPolicyFiles } from "./policy-files.ts";
import { defaultQuietMs, type PolicyFilesWatch, type WatchOptions, watchPolicyFiles } from "./watch-policy-files.ts";

/** How the policies in force compare with those on disk. */
export interface PolicyStatus {
  /** `stale`: the files on disk were refused, and the last good policies are still in force. */
  readonly state: "current" | "stale";
  /** What is wrong on disk; empty while `current`. */
  readonly problems: readonly Problem[];
}

export interface PolicyReloaderOptions {
  readonly path: string;
  /** The policies that the limiter uses already. */
  readonly loaded: LoadedPolicies;
  /** The files on disk that were refused at the start, so that something older is in force. Absent: none. */
  readonly refused?: RefusedPolicies | undefined;
  /** Applies policies. Throws if it cannot, and then changes nothing. */
  readonly limiter: { usePolicies(policySet: PolicySet): SnapshotInfo };
  readonly log: Logger;
  readonly metrics: Pick<Metrics, "countReload">;
  /** Called with files that were applied, for their contents besides policies, and to store them. */
  readonly onTakenUp?: (parsed: ParsedPolicies, files: PolicyFiles) => void;
  readonly watch?: WatchOptions;
  /** How files are read. Absent: from disk. */
  readonly read?: (path: string) => Promise<PolicyFiles>;
  /** How long that may take. Absent: 5 s. */
  readonly readWithinMs?: number;
}

/** What was found on disk. `seen` is the same if and only if the same was found. */
type Look =
  | { readonly kind: "good"; readonly seen: string; readonly parsed: ParsedPolicies; readonly files: PolicyFiles }
  | { readonly kind: "bad"; readonly seen: string; readonly error: unknown }
  | { readonly kind: "unchanged"; readonly seen: string };

const readWithinMs = 5_000;
/** A file that is written without a pause is believed in the end. */
const maxLooks = 10;

/** Starts to watch, and reloads once: that finds changes since the policies were loaded. */
export async function createPolicyReloader(options: PolicyReloaderOptions): Promise<PolicyReloader> {
  const reloader = new PolicyReloader(options);
  await reloader.start();
  return reloader;
}

/**
 * Keeps a limiter's policies those on disk: watches, reloads, and holds on to the last good ones.
 *
 *     current ──what is on disk is bad, twice──► stale ──it is good, or what is in force──► current
 */
export class PolicyReloader {
  readonly #options: PolicyReloaderOptions;
  readonly #silence: SluiceError;
  #status: PolicyStatus;
  /** The digest of the files in force. */
  #inForce: string;
  /** What was last found on disk, good or bad, so that nothing is reported twice. */
  #lastSeen: string;
  #watch: PolicyFilesWatch | undefined;
  #reading: Promise<PolicyFiles> | undefined;
  #running: Promise<void> | undefined;
  #again = false;
  #closed = false;

  constructor(options: PolicyReloaderOptions) {
    const { path, loaded, refused } = options;
    this.#options = options;
    this.#silence = unreadablePolicies(path, "cannot be read: the file system does not answer");
    this.#status =
      refused === undefined ? { state: "current", problems: [] } : { state: "stale", problems: refused.problems };
    this.#inForce = loaded.digest;
    this.#lastSeen = refused?.seen ?? loaded.digest;
  }

  get status(): PolicyStatus {
    return this.#status;
  }

  async start(): Promise<void> {
    const { path, watch } = this.#options;
    this.#watch = await watchPolicyFiles(path, () => void this.reload(), watch);
    await this.reload();
  }

  /** Reads the files again and applies them if they changed and are good. Never throws. */
  reload(): Promise<void> {
    if (this.#running !== undefined) this.#again = true;
    this.#running ??= this.#reloadWhileAsked().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  close(): void {
    this.#closed = true;
    this.#watch?.close();
  }

  async #reloadWhileAsked(): Promise<void> {
    do {
      this.#again = false;
      await this.#reloadOnce();
    } while (this.#again && !this.#closed);
  }

  async #reloadOnce(): Promise<void> {
    const { path, log } = this.#options;
    const found = await this.#lookTwice();
    if (this.#closed) return;
    this.#lastSeen = found.seen;
    if (found.kind === "unchanged") return log.debug("policies.unchanged", { path });
    if (found.kind === "bad") return this.#refuse(found.error);
    try {
      this.#apply(found.parsed, found.files);
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** A bad file may be half written: it is believed if it is still the same after a quiet time. */
  async #lookTwice(): Promise<Look> {
    const quietMs = this.#options.watch?.quietMs ?? defaultQuietMs;
    let found = await this.#look();
    for (let looks = 1; found.kind === "bad" && looks < maxLooks && !this.#closed; looks++) {
      if (found.error === this.#silence) break;
      await pause(quietMs, undefined, { ref: false });
      const later = await this.#look();
      if (later.seen === found.seen) break;
      found = later;
    }
    return found;
  }

  async #look(): Promise<Look> {
    let seen = "";
    try {
      const files = await this.#readInTime();
      seen = files.digest;
      if (seen === this.#lastSeen) return { kind: "unchanged", seen };
      return { kind: "good", seen, parsed: await parsePoliciesInWorker(files.files), files };
    } catch (error) {
      // An unreadable file has no digest; its reason stands in for one.
      seen ||= String(error);
      return seen === this.#lastSeen ? { kind: "unchanged", seen } : { kind: "bad", seen, error };
    }
  }

  /** Reads within a deadline. Only one thread waits for a read that hangs, and its result is used. */
  #readInTime(): Promise<PolicyFiles> {
    const { path, read = readPolicyFiles, readWithinMs: withinMs = readWithinMs } = this.#options;
    this.#reading ??= read(path).finally(() => {
      this.#reading = undefined;
    });
    const work = this.#reading;
    return withDeadline(work, withinMs, () => {
      const reload = (): Promise<void> => this.reload();
      void work.then(reload, reload);
      return this.#silence;
    });
  }

  #apply(parsed: ParsedPolicies, files: PolicyFiles): void {
    const { path, limiter, log, metrics, onTakenUp } = this.#options;
    const { policySet, warnings } = parsed;
    const { digest } = files;
    // Restoring the very text in force brings nothing new, but ends being stale.
    const generation = digest === this.#inForce ? undefined : limiter.usePolicies(policySet).generation;
    this.#inForce = digest;
    this.#status = { state: "current", problems: [] };
    metrics.countReload(true);
    onTakenUp?.(parsed, files);
    if (generation === undefined) {
      log.info("policies.reload_recovered", { path });
      return;
    }
    log.info("policies.reloaded", { path, generation, policies: countPolicies(policySet) });
    logWarnings(log, path, warnings);
  }

  #refuse(error: unknown): void {
    const { path, log, metrics } = this.#options;
    const known = error instanceof SluiceError && error.code === "invalid_policies";
    const problems = known ? error.problems : [{ path: [], message: `cannot be applied: ${error}` }];
    this.#status = { state: "stale", problems };
    metrics.countReload(false);
    const fields = { path, errors: problems.length, problems: problems.slice(0, maxLogged) };
    log.error("policies.reload_failed", { ...fields, ...(known ? {} : { err: error }) });
  }
}

const maxLogged = 20;

/** Logs what is legal but surprising, the first few in full. */
export function logWarnings(log: Logger, path: string, warnings: readonly Problem[]): void {
  if (warnings.length === 0) return;
  const problems = warnings.slice(0, maxLogged);
  log.warn("policies.warnings", { path, warnings: warnings.length, problems });
}
