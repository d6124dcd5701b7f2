import { type Limiter, type PolicySet, type Problem, SluiceError } from "sluice";
import { parsePolicyFiles } from "sluice/policy-text";
import { type LoadedPolicies, readPolicyFiles } from "./policy-files.ts";
import type { Logger } from "./telemetry/logger.ts";
import type { Metrics } from "./telemetry/metrics.ts";
import { type WatchOptions, watchPolicyFiles } from "./watch-policy-files.ts";

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
  readonly limiter: Pick<Limiter, "usePolicies">;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, "countReload">;
  readonly watch?: WatchOptions;
}

/** Keeps a limiter's policies those on disk: watches, reloads, and holds on to the last good ones. */
export async function createPolicyReloader(options: PolicyReloaderOptions): Promise<PolicyReloader> {
  const { path, limiter, log, metrics } = options;
  let status: PolicyStatus = { state: "current", problems: [] };
  let inForce = options.loaded.digest;
  /** What was on disk when it was last looked at, good or bad, so that nothing is said twice. */
  let lastSeen: string = inForce;
  let running: Promise<void> | undefined;
  let again = false;

  function takeUp(policySet: PolicySet, digest: string, warnings: readonly Problem[]): void {
    // Restoring the very text in force brings nothing new, but it does end being stale.
    const generation = digest === inForce ? undefined : limiter.usePolicies(policySet).generation;
    inForce = digest;
    status = { state: "current", problems: [] };
    metrics.countReload(true);
    if (generation === undefined) log.info({ path }, "the policies on disk are again those in force");
    else log.info({ path, generation, policies: policySet.policies.length }, "policies reloaded");
    logWarnings(log, path, warnings);
  }

  function refuse(error: unknown): void {
    const known = error instanceof SluiceError && error.code === "invalid_policies";
    const problems = known ? error.problems : [{ path: [], message: `cannot be taken up: ${error}` }];
    status = { state: "stale", problems };
    metrics.countReload(false);
    log.error({ path, problems, ...(known ? {} : { err: error }) }, "policies not reloaded; the last good ones stay");
  }

  async function reloadOnce(): Promise<void> {
    let seen = "";
    try {
      const { files, digest } = await readPolicyFiles(path);
      seen = digest;
      if (seen === lastSeen) return log.debug({ path }, "the policies have not changed");
      const { policySet, warnings } = parsePolicyFiles(files);
      takeUp(policySet, digest, warnings);
    } catch (error) {
      // An unreadable file has no digest; its reason stands in for one.
      seen ||= String(error);
      if (seen !== lastSeen) refuse(error);
    } finally {
      lastSeen = seen;
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
      } while (again);
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
    close: () => watch.close(),
  };
}

const maxLogged = 20;

/** Tells of what is legal but surprising, the first few in full. */
export function logWarnings(log: Logger, path: string, warnings: readonly Problem[]): void {
  if (warnings.length === 0) return;
  const problems = warnings.slice(0, maxLogged);
  log.warn({ path, warnings: warnings.length, problems }, "the policies are legal, but may surprise");
}
