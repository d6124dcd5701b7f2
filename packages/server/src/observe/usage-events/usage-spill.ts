import { createReadStream } from "node:fs";
import { type FileHandle, open, readdir, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline/promises";
import type { Logger } from "../telemetry/logger.ts";
import { renderUsageEvent, type UsageEvent, usageEventBytes, usageEventType, usualEventBytes } from "./usage-event.ts";

export interface UsageSpillOptions {
  /** Segments are `PATH.000001` and so on. */
  readonly path: string;
  readonly maxBytes: number;
  /** How many sinks an event goes to: it is kept until each has it. */
  readonly copies: number;
  /** Called with each event once it is on disk, or cannot be. */
  readonly onWritten: (event: UsageEvent) => void;
  readonly log: Pick<Logger, "info" | "warn">;
  /** The most events that wait to be written, and in KiB the memory that they may take; further ones are not kept on disk. */
  readonly maxWaiting?: number | undefined;
}

interface Segment {
  readonly path: string;
  bytes: number;
  /** Events that a sink still lacks; one more while the segment is read. */
  pending: number;
}

/** Numbers that only grow, but for the first. */
export interface UsageSpillStats {
  bytes: number;
  /** Events that were not kept, because there was no room or the disk failed. */
  unkept: number;
  /** Events read back from a run that did not end well. */
  replayed: number;
}

/** Events in one write. */
const eventsPerWrite = 1_000;
const segmentShare = 8;

/**
 * Keeps events on disk until every sink has them, so that they outlive a crash of this process. They are written before they are
 * sent, and read back at the next start:
 *
 *     add ──► written ──► onWritten ──► the sinks' queues ──► settle, once for each sink ──► the segment is empty: deleted
 *                │
 *                └── crash ──► replay, at the next start: the ids make a repeat harmless
 *
 * Written, not synchronised: what the machine itself loses is lost. The file belongs to one process.
 */
export class UsageSpill {
  readonly stats: UsageSpillStats = { bytes: 0, unkept: 0, replayed: 0 };
  readonly #options: UsageSpillOptions;
  readonly #old: readonly Segment[];
  readonly #kept = new Map<UsageEvent, { readonly segment: Segment; copies: number }>();
  #waiting: UsageEvent[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> = Promise.resolve();
  #isScheduled = false;
  #file: FileHandle;
  #current: Segment;
  #number: number;
  #isFailing = false;
  /** Whether the last line of the current segment may be cut off. */
  #isTorn = false;
  #isClosed = false;

  private constructor(options: UsageSpillOptions, old: readonly Segment[], number: number, file: FileHandle) {
    this.#options = options;
    this.#old = old;
    this.#number = number;
    this.#file = file;
    this.#current = { path: segmentPath(options.path, number), bytes: 0, pending: 0 };
    for (const { bytes } of old) this.stats.bytes += bytes;
  }

  /** Throws the file system's error if the folder cannot be written to. */
  static async open(options: UsageSpillOptions): Promise<UsageSpill> {
    const old = await findSegments(options.path);
    const number = Number(old.at(-1)?.path.slice(-6) ?? 0) + 1;
    return new UsageSpill(options, old, number, await open(segmentPath(options.path, number), "ax", 0o600));
  }

  add(event: UsageEvent): void {
    const { maxWaiting = 100_000 } = this.#options;
    const isFull = this.#waiting.length >= maxWaiting || this.#waitingBytes >= maxWaiting * usualEventBytes;
    if (this.#isClosed || isFull) {
      this.#unkeep([event], new Error("events come faster than they are written"));
      return;
    }
    this.#waiting.push(event);
    this.#waitingBytes += usageEventBytes(event);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // All events of a turn are written together.
    setImmediate(() => void this.written());
  }

  /** Resolves when everything added so far is on disk. */
  written(): Promise<void> {
    this.#isScheduled = false;
    this.#writing = this.#writing.then(() => this.#writeWaiting());
    return this.#writing;
  }

  /** A sink has the event, or will not have it. */
  settle(event: UsageEvent): void {
    const kept = this.#kept.get(event);
    if (kept === undefined) return;
    kept.copies -= 1;
    if (kept.copies > 0) return;
    this.#kept.delete(event);
    this.#release(kept.segment);
  }

  /** Reads back the events of earlier runs, as far as there is room for them; `wait` waits a moment. */
  async replay(hasRoom: () => boolean, wait: () => Promise<unknown>): Promise<void> {
    for (const segment of this.#old) {
      let spoiled = 0;
      const before = this.stats.replayed;
      for await (const line of createInterface({ input: createReadStream(segment.path), crlfDelay: Infinity })) {
        while (!(hasRoom() || this.#isClosed)) await wait();
        // What is left is read at the next start.
        if (this.#isClosed) return;
        if (line === "") continue;
        const event = parseEvent(line);
        if (event === undefined) spoiled += 1;
        else {
          this.stats.replayed += 1;
          this.#keep(event, segment);
          this.#options.onWritten(event);
        }
      }
      const events = this.stats.replayed - before;
      this.#options.log.info("usage_events.replayed", { file: segment.path, events, spoiled });
      this.#release(segment);
    }
  }

  /** What a sink still lacks stays on disk. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.written();
    await this.#file.close();
    if (this.#current.pending === 0) await rm(this.#current.path, { force: true });
  }

  async #writeWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      const events = this.#waiting.splice(0, eventsPerWrite);
      for (const event of events) this.#waitingBytes -= usageEventBytes(event);
      try {
        await this.#write(events);
      } catch (error) {
        this.#unkeep(events, error);
        continue;
      }
      this.#isFailing = false;
      for (const event of events) this.#keep(event, this.#current);
      for (const event of events) this.#options.onWritten(event);
    }
  }

  async #write(events: readonly UsageEvent[]): Promise<void> {
    const lines = events.map((event) => `${renderUsageEvent(event)}\n`).join("");
    // A write that failed halfway left a line that would spoil the next one.
    const text = Buffer.from(this.#isTorn ? `\n${lines}` : lines);
    const { maxBytes } = this.#options;
    if (this.stats.bytes + text.length > maxBytes) throw new Error(`it holds ${maxBytes} bytes already`);
    if (this.#current.bytes > 0 && this.#current.bytes + text.length > maxBytes / segmentShare) await this.#begin();
    this.#isTorn = true;
    const { bytesWritten } = await this.#file.write(text);
    this.#current.bytes += bytesWritten;
    this.stats.bytes += bytesWritten;
    if (bytesWritten < text.length) throw new Error("the disk is full");
    this.#isTorn = false;
  }

  /** Begins the next segment. The last one is deleted when nothing in it is pending. */
  async #begin(): Promise<void> {
    const number = this.#number + 1;
    const path = segmentPath(this.#options.path, number);
    const file = await open(path, "ax", 0o600);
    await this.#file.close();
    const last = this.#current;
    this.#file = file;
    this.#number = number;
    this.#current = { path, bytes: 0, pending: 0 };
    this.#isTorn = false;
    if (last.pending === 0) this.#delete(last);
  }

  #keep(event: UsageEvent, segment: Segment): void {
    this.#kept.set(event, { segment, copies: this.#options.copies });
    segment.pending += 1;
  }

  #unkeep(events: readonly UsageEvent[], error: unknown): void {
    this.stats.unkept += events.length;
    if (!this.#isFailing)
      this.#options.log.warn("usage_events.spill_failed", {
        file: this.#options.path,
        reason: error instanceof Error ? error.message : String(error),
      });
    this.#isFailing = true;
    for (const event of events) this.#options.onWritten(event);
  }

  #release(segment: Segment): void {
    segment.pending -= 1;
    if (segment.pending > 0) return;
    if (segment !== this.#current) this.#delete(segment);
    else this.#writing = this.#writing.then(() => this.#empty(segment));
  }

  /** Everything in the segment has arrived: a crash now has nothing to repeat. */
  async #empty(segment: Segment): Promise<void> {
    if (segment !== this.#current || segment.pending > 0 || segment.bytes === 0 || this.#isClosed) return;
    await this.#file.truncate(0).then(
      () => {
        this.stats.bytes -= segment.bytes;
        segment.bytes = 0;
      },
      () => undefined,
    );
  }

  #delete(segment: Segment): void {
    this.stats.bytes -= segment.bytes;
    // If it stays, it is read once more at the next start.
    void rm(segment.path, { force: true }).catch(() => undefined);
  }
}

function segmentPath(path: string, number: number): string {
  return `${path}.${String(number).padStart(6, "0")}`;
}

/** Segments of earlier runs, the oldest first. */
async function findSegments(path: string): Promise<readonly Segment[]> {
  const folder = dirname(path);
  const start = `${basename(path)}.`;
  const names = (await readdir(folder)).filter(
    (name) => name.startsWith(start) && /^\d{6}$/.test(name.slice(start.length)),
  );
  return Promise.all(
    names.sort().map(async (name) => {
      const { size } = await stat(join(folder, name));
      return { path: join(folder, name), bytes: size, pending: 1 };
    }),
  );
}

/** Undefined for a line that was cut off by the crash, or is not ours. */
function parseEvent(line: string): UsageEvent | undefined {
  try {
    const event = JSON.parse(line) as Partial<UsageEvent> | null;
    const isOurs = event?.type === usageEventType && typeof event.id === "string" && typeof event.data === "object";
    return isOurs ? (event as UsageEvent) : undefined;
  } catch {
    return undefined;
  }
}
