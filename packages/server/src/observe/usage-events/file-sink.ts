import { type FileHandle, open, rename, rm } from "node:fs/promises";
import type { EventSink } from "./event-sink.ts";
import { renderUsageEvent } from "./usage-event.ts";

export interface FileSinkOptions {
  readonly path: string;
  /** Above this many bytes the file is renamed to `PATH.1`, and a new one begun. */
  readonly maxBytes: number;
  /** How many renamed files to keep; the oldest is deleted. */
  readonly keep: number;
}

const lineFeed = 10;

/**
 * Appends events to a file, one a line. The file is opened for each batch, so that another program may rename it. A line that was
 * cut off by a crash or a full disk is ended before the next, and repeated: readers skip a line that is no JSON.
 */
export function createFileSink({ path, maxBytes, keep }: FileSinkOptions): EventSink {
  async function append(text: Buffer): Promise<void> {
    const file = await open(path, "a+", 0o600);
    try {
      const { size } = await file.stat();
      if (size > 0 && size + text.length > maxBytes) {
        await rotate();
        await file.close();
        await append(text);
        return;
      }
      const start = (await isCutOff(file, size)) ? Buffer.concat([Buffer.of(lineFeed), text]) : text;
      // May write less than all of it; then it throws in the next round, or ends there.
      for (let at = 0; at < start.length; ) at += (await file.write(start, at)).bytesWritten;
    } finally {
      await file.close().catch(() => undefined);
    }
  }

  async function rotate(): Promise<void> {
    await rm(`${path}.${keep}`, { force: true });
    for (let number = keep - 1; number >= 1; number--)
      await rename(`${path}.${number}`, `${path}.${number + 1}`).catch(ignoreMissing);
    if (keep > 0) await rename(path, `${path}.1`);
    else await rm(path, { force: true });
  }

  return {
    kind: "file",
    where: path,
    async send(events): Promise<void> {
      await append(Buffer.from(events.map((event) => `${renderUsageEvent(event)}\n`).join("")));
    },
    close: () => Promise.resolve(),
  };
}

async function isCutOff(file: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return false;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== lineFeed;
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
