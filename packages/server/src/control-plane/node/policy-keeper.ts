import { resolve } from "node:path";
import { type Problem, SluiceError } from "sluice";
import { parseServedPolicies } from "../../data-plane/policy-files/parse-served-policies.ts";
import {
  digestFiles,
  type LoadedPolicies,
  type PolicyFiles,
  type RefusedPolicies,
  readPolicyFiles,
} from "../../data-plane/policy-files/policy-files.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import {
  type PolicySnapshot,
  readPolicySnapshot,
  readSnapshotGeneration,
  type SnapshotGeneration,
  writePolicySnapshot,
} from "./policy-snapshot.ts";

/** Policies to start with, and the problems of those on disk, if these are older ones. */
export interface StartingPolicies {
  readonly loaded: LoadedPolicies;
  /** The files themselves, to be kept; undefined if the policies come from the snapshot, or there are none. */
  readonly files: PolicyFiles | undefined;
  /** Undefined: they are those on disk. */
  readonly refused: RefusedPolicies | undefined;
}

export interface PolicyKeeperOptions {
  /** The path of the snapshot. Undefined: none is written or read. */
  readonly file: string | undefined;
  readonly log: Logger;
  readonly nowMs?: () => number;
}

/**
 * Keeps the last good policies on disk, from files and from a policy store in one snapshot, and starts with them if
 * nothing newer is available. Snapshots are written one at a time, and of several waiting ones only the last.
 */
export class PolicyKeeper {
  readonly #file: string | undefined;
  readonly #log: Logger;
  readonly #nowMs: () => number;
  #files = noFiles;
  #stored: SnapshotGeneration | undefined;
  #writtenMs: number | undefined;
  #writing: Promise<void> = Promise.resolve();
  #latest = 0;

  constructor({ file, log, nowMs = Date.now }: PolicyKeeperOptions) {
    this.#file = file;
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** When the snapshot on disk was written; undefined if unknown. */
  get writtenMs(): number | undefined {
    return this.#writtenMs;
  }

  /** Loads the policies at the path, or else the snapshot. Throws `invalid_policies` if there is neither. */
  async load(path: string): Promise<StartingPolicies> {
    let seen = "";
    try {
      const files = await readPolicyFiles(path);
      const { digest } = files;
      seen = digest;
      return { loaded: { ...parseServedPolicies(files.files), digest }, files, refused: undefined };
    } catch (error) {
      if (this.#file === undefined || !(error instanceof SluiceError) || error.code !== "invalid_policies") throw error;
      const loaded = await this.#loadSnapshot(this.#file, path, error.problems);
      if (loaded === undefined) throw error;
      return { loaded, files: undefined, refused: { seen: seen || String(error), problems: error.problems } };
    }
  }

  /** Keeps these files. Never throws: a failure to write is reported. */
  keep(path: string, files: PolicyFiles, generation: number): Promise<void> {
    this.#files = { ...files, path: resolve(path), generation };
    return this.#writeInTurn();
  }

  /** What was kept of a policy store, and stays in the snapshot; undefined if nothing was, or it cannot be used. */
  async recallStored(store: string): Promise<SnapshotGeneration | undefined> {
    if (this.#file === undefined) return undefined;
    try {
      const found = await readSnapshotGeneration(this.#file, store);
      this.#stored ??= found?.kept;
      if (found !== undefined) this.#writtenMs = found.writtenMs;
      return found?.kept;
    } catch (error) {
      this.#log.error("snapshot.unusable", { snapshot: this.#file, reason: renderReason(error) });
      return undefined;
    }
  }

  /** Keeps this generation of a policy store, along with the files. Never throws. */
  keepStored(stored: SnapshotGeneration): Promise<void> {
    this.#stored = stored;
    return this.#writeInTurn();
  }

  /** Resolves when pending writes have finished, or after a moment. */
  close(): Promise<void> {
    return Promise.race([this.#writing, moment()]);
  }

  /** The content of the snapshot, or undefined. It was good once, but perhaps not for this version of Sluice. */
  async #loadSnapshot(file: string, path: string, problems: readonly Problem[]): Promise<LoadedPolicies | undefined> {
    const snapshot = await this.#recall(file, path);
    if (snapshot === undefined) return undefined;
    const loaded = this.#parse(file, snapshot);
    if (loaded === undefined) return undefined;
    const { writtenMs, generation } = snapshot;
    this.#writtenMs = writtenMs;
    this.#files = snapshot;
    this.#log.error("snapshot.used", {
      path,
      snapshot: file,
      written: new Date(writtenMs).toISOString(),
      generation,
      errors: problems.length,
      problems: problems.slice(0, maxReported),
    });
    return loaded;
  }

  async #recall(file: string, path: string): Promise<PolicySnapshot | undefined> {
    try {
      return await readPolicySnapshot(file, path);
    } catch (error) {
      this.#log.error("snapshot.unusable", { snapshot: file, reason: renderReason(error) });
      return undefined;
    }
  }

  #parse(file: string, { files, digest }: PolicySnapshot): LoadedPolicies | undefined {
    try {
      return { ...parseServedPolicies(files), digest };
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
      const problems = error.problems.slice(0, maxReported);
      this.#log.error("snapshot.unusable", { snapshot: file, problems });
      return undefined;
    }
  }

  #writeInTurn(): Promise<void> {
    const file = this.#file;
    if (file === undefined) return Promise.resolve();
    this.#latest += 1;
    const turn = this.#latest;
    this.#writing = this.#writing.then(() => (turn === this.#latest ? this.#write(file) : undefined));
    return this.#writing;
  }

  async #write(file: string): Promise<void> {
    const atMs = this.#nowMs();
    try {
      await writePolicySnapshot(file, { ...this.#files, stored: this.#stored, writtenMs: atMs });
      this.#writtenMs = atMs;
      this.#log.debug("snapshot.written", { snapshot: file, generation: this.#files.generation });
    } catch (error) {
      this.#log.warn("snapshot.write_failed", { snapshot: file, reason: renderReason(error) });
    }
  }
}

const maxReported = 20;

const noFiles: Pick<PolicySnapshot, "path" | "generation" | "digest" | "files"> = {
  path: "",
  generation: 0,
  files: [],
  digest: digestFiles([]),
};

/** A disk that hangs does not keep the server from stopping. */
function moment(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 2_000).unref());
}

function renderReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
