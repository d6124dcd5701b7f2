import { stat } from "node:fs/promises";

export interface FollowFilesOptions<T> {
  readonly paths: readonly string[];
  /** Reads the files. Throws if they cannot be used. */
  readonly load: () => Promise<T>;
  /** Called with every later reading that is valid. */
  readonly onChange: (loaded: T) => void;
  /** Called once for every change that cannot be used, and again if the reason changes. */
  readonly onRefused: (error: unknown) => void;
  /** How often to check for changes. Absent: 500. */
  readonly pollMs?: number | undefined;
}

export interface FollowedFiles<T> {
  /** The first reading. */
  readonly first: T;
  /** Reads again at once, changed or not. */
  reload(): Promise<void>;
  close(): void;
}

/** After this many polls, files that could not be used are read again even if they have not changed. */
const looksUntilRetry = 10;

/**
 * Reads small files, and again whenever they change: rewritten, replaced, or reached through a changed link. Files that
 * belong together are rarely replaced in one stroke, so a problem is believed only if it is the same at the next poll,
 * and tried again now and then: a shortage of file descriptors passes without a change. Throws what the first reading
 * throws.
 */
export async function followFiles<T>(options: FollowFilesOptions<T>): Promise<FollowedFiles<T>> {
  const { paths, load, onChange, onRefused, pollMs = 500 } = options;
  // Taken before reading: a change in between is found at the next poll.
  let known = await readSignature(paths);
  /** The signature of files that could not be used once. */
  let doubted: string | undefined;
  /** The signature of refused files and the reason, both reported already. */
  let refused: string | undefined;
  let looksSinceRefused = 0;
  let looking: Promise<void> | undefined;
  let closed = false;
  const first = await load();

  async function look(asked: boolean): Promise<void> {
    const found = await readSignature(paths);
    looksSinceRefused += 1;
    const retry = refused !== undefined && looksSinceRefused >= looksUntilRetry;
    if (found === known && !asked && !retry) return;
    try {
      const loaded = await load();
      if (closed) return;
      known = found;
      doubted = undefined;
      refused = undefined;
      onChange(loaded);
    } catch (error) {
      if (closed) return;
      if (!asked && found !== known && doubted !== found) {
        doubted = found;
        return;
      }
      known = found;
      doubted = undefined;
      looksSinceRefused = 0;
      const why = `${found}\n${error}`;
      const alreadyReported = refused === why;
      refused = why;
      if (asked || !alreadyReported) onRefused(error);
    }
  }

  function lookNext(asked: boolean): Promise<void> {
    const mine: Promise<void> = (looking ?? Promise.resolve())
      .then(() => (closed ? undefined : look(asked)))
      .finally(() => {
        if (looking === mine) looking = undefined;
      });
    looking = mine;
    return mine;
  }

  const poll = setInterval(() => {
    // A file system that hangs is asked once, not again and again.
    if (looking === undefined) void lookNext(false);
  }, pollMs).unref();

  return {
    first,
    reload: () => lookNext(true),
    close(): void {
      closed = true;
      clearInterval(poll);
    },
  };
}

async function readSignature(paths: readonly string[]): Promise<string> {
  const parts = paths.map(async (path) => {
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
      return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
    } catch (error) {
      return String((error as NodeJS.ErrnoException).code);
    }
  });
  return (await Promise.all(parts)).join("\n");
}
