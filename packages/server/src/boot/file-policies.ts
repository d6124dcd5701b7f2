import { type PolicySet, parsePolicies } from "sluice";
import type { RateLimitsRuntime } from "sluice/policy-text";
import type { PoliciesInForce } from "../control-plane/node/policies-in-force.ts";
import { PolicyKeeper, type StartingPolicies } from "../control-plane/node/policy-keeper.ts";
import type { ParsedPolicies } from "../data-plane/policy-files/parse-served-policies.ts";
import type { LoadedPolicies, PolicyFiles } from "../data-plane/policy-files/policy-files.ts";
import {
  createPolicyReloader,
  logWarnings,
  type PolicyReloader,
  type PolicyStatus,
} from "../data-plane/policy-files/policy-reloader.ts";
import type { WatchOptions } from "../data-plane/policy-files/watch-policy-files.ts";
import type { PolicyOrigin } from "../data-plane/status/server-status.ts";
import type { Logger } from "../observe/telemetry/logger.ts";
import type { Metrics } from "../observe/telemetry/metrics.ts";
import type { Settings } from "../settings/settings.ts";

export interface FilePoliciesOptions {
  readonly settings: Pick<Settings, "config" | "policySnapshot">;
  readonly log: Logger;
  readonly startedAtMs: number;
  /** The number of this process if there are several behind the same ports. */
  readonly worker: number | undefined;
}

export interface WatchFilesOptions {
  readonly policies: Pick<PoliciesInForce, "useFiles">;
  readonly metrics: Pick<Metrics, "countReload">;
  /** The generation in force, to be stored with the files. */
  readonly generation: () => number;
  /** Called when files were applied, after `runtime` is theirs. */
  readonly onApplied: () => void;
  readonly watch: WatchOptions | undefined;
}

/**
 * The policies of files: those to start with and, after `watch`, those on disk, as long as they are valid.
 *
 *     loaded ──watch──► current ◄──► stale (what is on disk is refused; the last good policies decide)
 *     (files, else the snapshot, else none)
 */
export class FilePolicies {
  /** The policies that the server starts with. */
  readonly loaded: LoadedPolicies;
  /** Whether the files on disk were refused at the start, so that the snapshot decides. */
  readonly startedStale: boolean;
  readonly keeper: PolicyKeeper;
  readonly #options: FilePoliciesOptions;
  readonly #start: StartingPolicies;
  #runtime: RateLimitsRuntime | undefined;
  #origin: PolicyOrigin;
  #reloader: PolicyReloader | undefined;

  /** Throws `invalid_policies` if neither files nor snapshot can be used. */
  static async load(options: FilePoliciesOptions): Promise<FilePolicies> {
    const { settings, log } = options;
    const keeper = new PolicyKeeper({ file: settings.policySnapshot, log });
    const start = settings.config === undefined ? withoutFiles() : await keeper.load(settings.config);
    return new FilePolicies(options, keeper, start);
  }

  private constructor(options: FilePoliciesOptions, keeper: PolicyKeeper, start: StartingPolicies) {
    this.#options = options;
    this.keeper = keeper;
    this.#start = start;
    this.loaded = start.loaded;
    this.startedStale = start.refused !== undefined;
    this.#runtime = start.loaded.runtime;
    this.#origin = {
      source: options.settings.config === undefined ? "none" : this.startedStale ? "snapshot" : "files",
      digest: start.loaded.digest,
      takenUpMs: options.startedAtMs,
    };
  }

  /** The `runtime` block of the files in force. */
  get runtime(): RateLimitsRuntime | undefined {
    return this.#runtime;
  }

  get origin(): PolicyOrigin {
    return this.#origin;
  }

  get status(): PolicyStatus {
    if (this.#reloader !== undefined) return this.#reloader.status;
    const { refused } = this.#start;
    return refused === undefined ? { state: "current", problems: [] } : { state: "stale", problems: refused.problems };
  }

  /** Starts to follow the files, if there are any. */
  async watch(options: WatchFilesOptions): Promise<void> {
    const { settings, log } = this.#options;
    const { loaded, files, refused } = this.#start;
    const { config: path } = settings;
    if (path === undefined) return;
    const { policies, metrics, generation, onApplied, watch } = options;
    logWarnings(log, path, loaded.warnings);
    if (files !== undefined) this.#keep(path, files, generation());
    this.#reloader = await createPolicyReloader({
      ...{ path, loaded, refused, log, metrics },
      ...(watch === undefined ? {} : { watch }),
      limiter: { usePolicies: (policySet: PolicySet) => policies.useFiles(policySet) },
      onTakenUp: (parsed, taken) => {
        this.#apply(parsed, taken);
        onApplied();
        this.#keep(path, taken, generation());
      },
    });
  }

  /** Reads the files again now. */
  async reload(): Promise<void> {
    await this.#reloader?.reload();
  }

  stopWatching(): void {
    this.#reloader?.close();
  }

  #apply({ runtime }: ParsedPolicies, { digest }: PolicyFiles): void {
    const isSame = digest === this.#origin.digest;
    this.#origin = { source: "files", digest, takenUpMs: isSame ? this.#origin.takenUpMs : Date.now() };
    this.#runtime = runtime;
  }

  /** Of several processes, one is enough to store what all of them use. */
  #keep(path: string, files: PolicyFiles, generation: number): void {
    if ((this.#options.worker ?? 1) === 1) void this.keeper.keep(path, files, generation);
  }
}

/** Only the default policy. */
function withoutFiles(): StartingPolicies {
  const loaded = { policySet: parsePolicies({ policies: [] }), warnings: [], dialects: [], digest: "" };
  return { loaded, files: undefined, refused: undefined };
}
