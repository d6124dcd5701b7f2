import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { PolicyFile } from "sluice/policy-file";
import { digestFiles, type PolicyFiles } from "../../data-plane/policy-files/policy-files.ts";
import type { StoredGeneration } from "../documents/stored-generation.ts";

/** The last good policies, kept on disk to start with while their files or store are unavailable. */
export interface PolicySnapshot extends PolicyFiles {
  /** The absolute path of the files; empty if there were none. */
  readonly path: string;
  /** The generation of the policies, in the process that wrote them. */
  readonly generation: number;
  readonly writtenMs: number;
  /** The policies of the policy store. */
  readonly stored?: SnapshotGeneration | undefined;
}

/** A generation of the policy store, and the store's address. */
export interface SnapshotGeneration extends StoredGeneration {
  /** Without user and password. */
  readonly store: string;
}

/** The format that a file must state to be read; another number is another format. */
const format = 1;
const maxBytes = 256 * 1024 * 1024;

/**
 * Writes a snapshot atomically: to a temporary file next to it, to the disk, and only then under its name. Whenever the
 * machine stops, the file is whole: the old one or the new. Only its owner may read it.
 */
export async function writePolicySnapshot(file: string, snapshot: PolicySnapshot): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true });
  // Processes in containers have the same ids, and may share a folder.
  const draft = join(folder, `${draftPrefix(file)}${randomUUID()}`);
  await removeOldDrafts(file);
  try {
    await writeDraft(draft, renderPolicySnapshot(snapshot));
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncFolder(folder);
}

async function writeDraft(draft: string, text: string): Promise<void> {
  const handle = await open(draft, "wx", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Reads a snapshot of the policies at a path. Undefined if there is none; throws the reason if it cannot be used. */
export async function readPolicySnapshot(file: string, path: string): Promise<PolicySnapshot | undefined> {
  const text = await readText(file);
  if (text === undefined) return undefined;
  const snapshot = parsePolicySnapshot(text);
  if (snapshot.path !== resolve(path))
    throw new Error(`holds the policies of ${snapshot.path}, and not those of ${resolve(path)}`);
  return snapshot;
}

/** What was kept of a policy store. Undefined if nothing was; throws the reason if it cannot be used. */
export async function readSnapshotGeneration(
  file: string,
  store: string,
): Promise<{ readonly kept: SnapshotGeneration; readonly writtenMs: number } | undefined> {
  const text = await readText(file);
  if (text === undefined) return undefined;
  const { stored, writtenMs } = parsePolicySnapshot(text);
  if (stored === undefined) return undefined;
  if (stored.store !== store) throw new Error(`holds the policies of ${stored.store}, and not those of ${store}`);
  return { kept: stored, writtenMs };
}

export function renderPolicySnapshot(snapshot: PolicySnapshot): string {
  const { path, generation, writtenMs, digest, files, stored } = snapshot;
  const written = new Date(writtenMs).toISOString();
  const kept = stored === undefined ? undefined : { stored, stored_digest: digestText(JSON.stringify(stored)) };
  return `${JSON.stringify({ sluice_policy_snapshot: format, path, generation, written, digest, files, ...kept })}\n`;
}

function digestText(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function parsePolicySnapshot(text: string): PolicySnapshot {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("is truncated, or not a snapshot at all");
  }
  const found = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  const { sluice_policy_snapshot: is, path, generation, written, digest, files, stored, stored_digest } = found;
  if (is !== format) throw new Error("is not a snapshot of this version of Sluice");
  const writtenMs = Date.parse(String(written));
  if (typeof path !== "string" || typeof generation !== "number" || typeof digest !== "string" || !isFiles(files))
    throw new Error("lacks a field that every snapshot has");
  if (Number.isNaN(writtenMs)) throw new Error("does not say when it was written");
  if (digestFiles(files) !== digest) throw new Error("was changed since it was written");
  // The digest covers the content in its written order; anything else is rejected.
  if (stored !== undefined && digestText(JSON.stringify(stored)) !== stored_digest)
    throw new Error("was changed since it was written");
  return {
    path,
    generation,
    writtenMs,
    digest,
    files,
    ...(stored === undefined ? {} : { stored: stored as SnapshotGeneration }),
  };
}

function isFiles(value: unknown): value is readonly PolicyFile[] {
  return (
    Array.isArray(value) &&
    value.every((one: unknown) => {
      if (typeof one !== "object" || one === null) return false;
      const { file, text } = one as Record<string, unknown>;
      return typeof file === "string" && typeof text === "string";
    })
  );
}

async function readText(file: string): Promise<string | undefined> {
  const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (found === undefined) return undefined;
  if (!found.isFile()) throw new Error("is not a file");
  if (found.size > maxBytes) throw new Error(`is ${found.size} bytes long; at most ${maxBytes} are read`);
  return readFile(file, "utf8");
}

function draftPrefix(file: string): string {
  return `.${basename(file)}.draft-`;
}

/** A draft untouched for this long is abandoned. */
const draftLivesMs = 3_600_000;

/** Removes drafts of processes that ended while writing. A draft that another process may be writing is left alone. */
async function removeOldDrafts(file: string): Promise<void> {
  const prefix = draftPrefix(file);
  const folder = dirname(file);
  for (const name of await readdir(folder)) {
    if (!name.startsWith(prefix)) continue;
    const draft = join(folder, name);
    const found = await stat(draft).catch(() => undefined);
    if (found !== undefined && Date.now() - found.mtimeMs > draftLivesMs) await rm(draft, { force: true });
  }
}

/** Syncs the new name to disk, on systems that can sync folders. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r").catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}
