import { type FileHandle, open, rename, stat } from "node:fs/promises";
import { promisify } from "node:util";
import { zstdCompress } from "node:zlib";

const compress = promisify(zstdCompress);

/** Text that waits to be compressed and written; a recording that is further behind drops requests. */
const mostWaiting = 16 * 1024 * 1024;

/**
 * A recording on disk: zstd, a frame for each write, so that whatever was written can be read after a crash. Compressing
 * and writing happen in other threads.
 */
export class RecordingFile {
  readonly path: string;
  readonly #file: FileHandle;
  #parts: string[] = [];
  #textLength = 0;
  #waiting = 0;
  #bytes = 0;
  #writing: Promise<void> = Promise.resolve();
  #error: Error | undefined;

  private constructor(path: string, file: FileHandle) {
    this.path = path;
    this.#file = file;
  }

  /** Rejects with the file system's error. A file that is there already is set aside, under its name and its time. */
  static async create(path: string): Promise<RecordingFile> {
    const old = await stat(path).catch(() => undefined);
    if (old?.isFile() === true) await rename(path, `${path}.${old.mtime.toISOString().replaceAll(/[:.]/g, "-")}`);
    return new RecordingFile(path, await open(path, "wx", 0o600));
  }

  /** As they are stored. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The first error of writing. Nothing is written afterwards. */
  get error(): Error | undefined {
    return this.#error;
  }

  get isBehind(): boolean {
    return this.#waiting + this.#textLength > mostWaiting;
  }

  /** Characters that the next flush writes. */
  get textLength(): number {
    return this.#textLength;
  }

  add(line: string): void {
    this.#parts.push(line, "\n");
    this.#textLength += line.length + 1;
  }

  /** Resolves when everything added so far is on disk, or cannot be. */
  flush(): Promise<void> {
    if (this.#parts.length > 0) {
      const text = Buffer.from(this.#parts.join(""));
      this.#parts = [];
      this.#textLength = 0;
      this.#waiting += text.length;
      this.#writing = this.#writing.then(() => this.#write(text));
    }
    return this.#writing;
  }

  async close(): Promise<void> {
    await this.flush();
    await this.#file.close();
  }

  async #write(text: Buffer): Promise<void> {
    try {
      if (this.#error !== undefined) return;
      const frame = await compress(text);
      for (let at = 0; at < frame.length; ) at += (await this.#file.write(frame, at)).bytesWritten;
      this.#bytes += frame.length;
    } catch (error) {
      this.#error ??= error instanceof Error ? error : new Error(String(error));
    } finally {
      this.#waiting -= text.length;
    }
  }
}
