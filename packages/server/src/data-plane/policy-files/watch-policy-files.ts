import { type FSWatcher, watch } from "node:fs";
import { lstat, readdir, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, parse, resolve, sep } from "node:path";
import { findPolicyFiles, isPolicyFileName } from "sluice/policy-file";
import { withDeadline } from "../../with-deadline.ts";

export const defaultQuietMs = 100;
const lookWithinMs = 5_000;

export interface WatchOptions {
  /** How long nothing may change before a change is reported. */
  readonly quietMs?: number;
  /** How often to poll, for file systems that send no events. */
  readonly pollMs?: number;
}

export interface PolicyFilesWatch {
  close(): void;
}

/**
 * Calls `onChange` once things have been quiet for a while after anything behind `path` changed.
 *
 * Folders are watched, not files: an editor that saves by renaming puts another file under the name. Every folder that
 * contains a symbolic link on the way is watched too, so replacing the link (as Kubernetes does with `..data`) is
 * noticed. A slow poll compares what is there with what was, and follows links and folders that have been replaced.
 *
 * `onChange` may be called without a change in content; comparing contents is up to the caller.
 */
export async function watchPolicyFiles(
  path: string,
  onChange: () => void,
  { quietMs = defaultQuietMs, pollMs = 2_000 }: WatchOptions = {},
): Promise<PolicyFilesWatch> {
  const watchers = new Map<string, FSWatcher>();
  let quiet: NodeJS.Timeout | undefined;
  let closed = false;

  function changed(): void {
    if (closed) return;
    clearTimeout(quiet);
    quiet = setTimeout(settled, quietMs).unref();
  }

  function settled(): void {
    // A replacement may have brought other folders; they must be watched before the caller reads.
    const tell = (): void => {
      if (!closed) onChange();
    };
    void withDeadline(follow(), lookWithinMs, silence).then(tell, tell);
  }

  async function follow(): Promise<void> {
    const wanted = new Map<string, WatchedFolder>();
    for (const folder of await findFoldersToWatch(path)) {
      const found = await stat(folder.path, { bigint: true }).catch(() => undefined);
      // A folder that was replaced by another of the same name needs a new watcher, hence its inode.
      if (found !== undefined) wanted.set(`${found.dev}:${found.ino}:${folder.path}`, folder);
    }
    if (closed) return;
    for (const [key, watcher] of watchers) {
      if (wanted.has(key)) continue;
      watcher.close();
      watchers.delete(key);
    }
    for (const [key, folder] of wanted) {
      if (watchers.has(key)) continue;
      const watcher = openWatcher(folder, changed);
      if (watcher !== undefined) watchers.set(key, watcher);
    }
  }

  await follow();
  let seen = await findSignature(path);
  let looking = false;

  async function look(): Promise<void> {
    await follow();
    const now = await findSignature(path);
    if (now !== seen) changed();
    seen = now;
  }

  /**
   * A look that hangs is reported as a change, so that the caller tries to read and finds out; no second one is
   * started.
   */
  async function lookInTime(): Promise<void> {
    if (looking) return;
    looking = true;
    const work = look().finally(() => {
      looking = false;
    });
    await withDeadline(work, lookWithinMs, silence);
  }

  const poll = setInterval(() => void lookInTime().catch(changed), pollMs).unref();

  return {
    close(): void {
      closed = true;
      clearTimeout(quiet);
      clearInterval(poll);
      for (const watcher of watchers.values()) watcher.close();
      watchers.clear();
    },
  };
}

function silence(): Error {
  return new Error("the file system does not answer");
}

/** A folder, and which names in it matter. */
interface WatchedFolder {
  readonly path: string;
  readonly names: Set<string>;
  /** Whether every policy file in it matters, including future ones. */
  policyFiles: boolean;
}

/** Undefined if the system cannot watch (no watches left, no events on this file system): then the poll has to do. */
function openWatcher(folder: WatchedFolder, changed: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder.path, { persistent: false }, (_event, name) => {
      if (name === null || matters(folder, name)) changed();
    });
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}

function matters(folder: WatchedFolder, name: string): boolean {
  // `..data` and its like: Kubernetes keeps them next to the files they stand for.
  if (folder.policyFiles && (isPolicyFileName(name) || name.startsWith(".."))) return true;
  return folder.names.has(name) || name === basename(folder.path);
}

/** Every folder in which something could change what `path` leads to. */
async function findFoldersToWatch(path: string): Promise<readonly WatchedFolder[]> {
  const folders = new Map<string, WatchedFolder>();
  const folderAt = (folderPath: string): WatchedFolder => {
    let folder = folders.get(folderPath);
    if (folder === undefined) {
      folder = { path: folderPath, names: new Set(), policyFiles: false };
      folders.set(folderPath, folder);
    }
    return folder;
  };

  const end = await walk(resolve(path), folderAt);
  if (end?.isFolder) {
    folderAt(end.path).policyFiles = true;
    const names = await readdir(end.path).catch(() => []);
    for (const name of names.filter(isPolicyFileName)) await walk(join(end.path, name), folderAt);
  }
  return [...folders.values()];
}

/** Follows a path, link by link, and notes the folder and name of each link, and of the end. */
async function walk(
  path: string,
  folderAt: (path: string) => WatchedFolder,
): Promise<{ readonly path: string; readonly isFolder: boolean } | undefined> {
  const { root } = parse(path);
  let here = root;
  let ahead = path.slice(root.length).split(sep);
  let links = 0;
  let isFolder = true;
  for (let name = ahead.shift(); name !== undefined; name = ahead.shift()) {
    if (name === "" || name === ".") continue;
    const next = join(here, name);
    const found = await lstat(next).catch(() => undefined);
    if (found === undefined) {
      folderAt(here).names.add(name);
      return undefined;
    }
    if (found.isSymbolicLink()) {
      folderAt(here).names.add(name);
      if (++links > 40) return undefined;
      const target = resolve(here, await readlink(next).catch(() => "."));
      ahead = [...target.slice(parse(target).root.length).split(sep), ...ahead];
      here = parse(target).root;
      continue;
    }
    here = next;
    isFolder = found.isDirectory();
  }
  if (!isFolder) folderAt(dirname(here)).names.add(basename(here));
  return { path: here, isFolder };
}

/** Changes when a file is written, replaced, added, removed or reached through a changed link. */
async function findSignature(path: string): Promise<string> {
  try {
    const parts: string[] = [];
    for (const file of await findPolicyFiles(path)) {
      const found = await stat(file, { bigint: true });
      parts.push(`${await realpath(file)} ${found.dev}:${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`);
    }
    return parts.join("\n");
  } catch (error) {
    return String(error);
  }
}
