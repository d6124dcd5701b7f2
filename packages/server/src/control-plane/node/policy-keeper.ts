import { resolve } from "node:path";
import { SluiceError } from "sluice";
import { parsePolicies } from "../../data-plane/policy-files/parse-policies.ts";
import {
  digestOf,
  type LoadedPolicies,
  type PolicyFiles,
  type RefusedPolicies,
  readPolicyFiles,
} from "../../data-plane/policy-files/policy-files.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import {
  type KeptGeneration,
  type PolicySnapshot,
  readKeptGeneration,
  readPolicySnapshot,
  writePolicySnapshot,
} from "./policy-snapshot.ts";

/** Policies to start with, and what was wrong with those on disk, if these are older ones. */
export interface StartingPolicies {
  readonly loaded: LoadedPolicies;
  /** The files themselves, to be kept; undefined where they come from the snapshot, or there are none. */
  readonly files: PolicyFiles | undefined;
  /** Undefined: they are those on disk. */
  readonly refused: RefusedPolicies | undefined;
}

/** Keeps the last good policies on disk, and starts with them when there is nothing better. */
export interface PolicyKeeper {
  /** Loads what is at the path, or else takes the snapshot. Throws `invalid_policies` where there is neither. */
  load(path: string): Promise<StartingPolicies>;
  /** Keeps these files. Never throws: what cannot be written is told. */
  keep(path: string, files: PolicyFiles, generation: number): Promise<void>;
  /** What was kept of a policy store, which goes on being kept; undefined where nothing was, or it cannot be used. */
  recallStored(store: string): Promise<KeptGeneration | undefined>;
  /** Keeps this generation of a policy store, beside the files. Never throws. */
  keepStored(stored: KeptGeneration): Promise<void>;
  /** Resolves when what is being written is, or after a moment. */
  close(): Promise<void>;
  /** When the snapshot on disk was written; undefined while none is known. */
  readonly writtenMs: number | undefined;
}

export interface PolicyKeeperOptions {
  /** Path of the snapshot. Undefined: none is kept, and none is taken. */
  readonly file: string | undefined;
  readonly log: Logger;
  readonly nowMs?: () => number;
}

export function createPolicyKeeper({ file, log, nowMs = Date.now }: PolicyKeeperOptions): PolicyKeeper {
  let writtenMs: number | undefined;
  let writing: Promise<void> = Promise.resolve();
  let latest = 0;
  let keptFiles = noFiles;
  let stored: KeptGeneration | undefined;

  async function recall(file: string, path: string): Promise<PolicySnapshot | undefined> {
    try {
      return await readPolicySnapshot(file, path);
    } catch (error) {
      log.error("snapshot.unusable", { snapshot: file, reason: reasonOf(error) });
      return undefined;
    }
  }

  /** What the snapshot holds, or undefined. It was good once, but perhaps not to this version of Sluice. */
  async function loadSnapshot(file: string, path: string): Promise<[PolicySnapshot, LoadedPolicies] | undefined> {
    const snapshot = await recall(file, path);
    if (snapshot === undefined) return undefined;
    try {
      return [snapshot, { ...parsePolicies(snapshot.files), digest: snapshot.digest }];
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
      log.error("snapshot.unusable", { snapshot: file, problems: error.problems.slice(0, 20) });
      return undefined;
    }
  }

  async function write(file: string): Promise<void> {
    const atMs = nowMs();
    try {
      await writePolicySnapshot(file, { ...keptFiles, stored, writtenMs: atMs });
      writtenMs = atMs;
      log.debug("snapshot.written", { snapshot: file, generation: keptFiles.generation });
    } catch (error) {
      log.warn("snapshot.write_failed", { snapshot: file, reason: reasonOf(error) });
    }
  }

  /** One after the other, and of several that wait only the last. */
  function writeInTurn(): Promise<void> {
    if (file === undefined) return Promise.resolve();
    latest += 1;
    const turn = latest;
    writing = writing.then(() => (turn === latest ? write(file) : undefined));
    return writing;
  }

  return {
    async load(path): Promise<StartingPolicies> {
      let seen = "";
      try {
        const files = await readPolicyFiles(path);
        const { digest } = files;
        seen = digest;
        return { loaded: { ...parsePolicies(files.files), digest }, files, refused: undefined };
      } catch (error) {
        if (file === undefined || !(error instanceof SluiceError) || error.code !== "invalid_policies") throw error;
        const recalled = await loadSnapshot(file, path);
        if (recalled === undefined) throw error;
        const [snapshot, loaded] = recalled;
        ({ writtenMs } = snapshot);
        keptFiles = snapshot;
        const { problems } = error;
        log.error("snapshot.used", {
          path,
          snapshot: file,
          written: new Date(snapshot.writtenMs).toISOString(),
          generation: snapshot.generation,
          errors: problems.length,
          problems: problems.slice(0, 20),
        });
        return { loaded, files: undefined, refused: { seen: seen || String(error), problems } };
      }
    },
    keep(path, files, generation): Promise<void> {
      keptFiles = { ...files, path: resolve(path), generation };
      return writeInTurn();
    },
    async recallStored(store): Promise<KeptGeneration | undefined> {
      if (file === undefined) return undefined;
      try {
        const found = await readKeptGeneration(file, store);
        stored ??= found?.kept;
        if (found !== undefined) ({ writtenMs } = found);
        return found?.kept;
      } catch (error) {
        log.error("snapshot.unusable", { snapshot: file, reason: reasonOf(error) });
        return undefined;
      }
    },
    keepStored(next): Promise<void> {
      stored = next;
      return writeInTurn();
    },
    close: () => Promise.race([writing, moment()]),
    get writtenMs(): number | undefined {
      return writtenMs;
    },
  };
}

const noFiles: Pick<PolicySnapshot, "path" | "generation" | "digest" | "files"> = {
  path: "",
  generation: 0,
  files: [],
  digest: digestOf([]),
};

/** A disk that hangs keeps nobody from stopping. */
function moment(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 2_000).unref());
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
