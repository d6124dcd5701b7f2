import type { RecordingFacts } from "../replay/recording-lines.ts";
import type { FieldMap } from "./field-map.ts";
import { type LineParser, noRequest } from "./line-parser.ts";
import { LineSplitter } from "./line-splitter.ts";
import { createLineParser, detectFormat, type LogFormat } from "./log-formats.ts";
import { type LogSource, readBytes } from "./open-log.ts";
import type { OrderedRequests } from "./ordered-requests.ts";

/** What was read so far, over all files. */
export interface LogTotals {
  lines: number;
  /** Lines without a request that can be read. */
  unreadable: number;
  /** The first of them. */
  readonly examples: UnreadableLine[];
  /** Bytes as they are stored. */
  readBytes: number;
}

export interface UnreadableLine {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
}

const mostExamples = 5;
const exampleLength = 200;

export interface LogReaderOptions {
  /** Absent: found out by the first line. */
  readonly format: LogFormat | undefined;
  readonly map: FieldMap;
  readonly deniedStatuses: ReadonlySet<number>;
  readonly isOnly?: boolean | undefined;
  /** How many bytes a log may have when it is decompressed. Absent: any number. */
  readonly maxTextBytes?: number | undefined;
}

/** A log that cannot be read on: it is not there, it may not be read, or its compressed bytes are damaged. */
export class LogUnreadable extends Error {
  override readonly name: string = "LogUnreadable";

  constructor(file: string, cause: unknown) {
    super(`${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** Reads one log, chunk by chunk. */
export class LogReader {
  readonly #name: string;
  readonly #options: LogReaderOptions;
  readonly #totals: LogTotals;
  readonly #ordered: OrderedRequests;
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #splitter: LineSplitter;
  #parser: LineParser | undefined;
  #format: LogFormat | undefined;
  #lines = 0;
  #textBytes = 0;
  /** The latest second that it came to. */
  latestSecond: number = Number.NEGATIVE_INFINITY;
  isDone = false;

  constructor(source: LogSource, options: LogReaderOptions, totals: LogTotals, ordered: OrderedRequests) {
    this.#name = source.name;
    this.#options = options;
    this.#totals = totals;
    this.#ordered = ordered;
    const onRead = (bytes: number): void => {
      totals.readBytes += bytes;
    };
    this.#chunks = readBytes(source, onRead)[Symbol.asyncIterator]();
    this.#splitter = new LineSplitter(
      (bytes, start, end) => this.#readLine(bytes, start, end),
      () => this.#countUnreadable("(longer than 1 MiB)"),
    );
  }

  /** The format of its lines; undefined before the first one. */
  get format(): LogFormat | undefined {
    return this.#format;
  }

  /** What a recording says about itself. Undefined: it is a log, or empty. */
  get recording(): RecordingFacts | undefined {
    return this.#parser?.recording;
  }

  get carried(): readonly string[] {
    return this.#parser?.carried ?? [];
  }

  /** Reads the next chunk. */
  async readOn(): Promise<void> {
    const { done, value } = await this.#chunks.next().catch((error: unknown): IteratorResult<Buffer> => {
      // The last part of a recording may be cut off, by a crash or because it is still being written.
      if (this.recording !== undefined && this.#lines > 0) return { done: true, value: undefined };
      throw new LogUnreadable(this.#name, error);
    });
    if (done === true) {
      this.#splitter.finish();
      this.isDone = true;
    } else {
      const { maxTextBytes = Number.POSITIVE_INFINITY } = this.#options;
      this.#textBytes += value.length;
      if (this.#textBytes > maxTextBytes)
        throw new LogUnreadable(this.#name, `it has more than ${maxTextBytes} bytes when it is decompressed`);
      this.#splitter.push(value);
    }
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  #readLine(bytes: Buffer, start: number, end: number): void {
    this.#lines += 1;
    this.#totals.lines += 1;
    this.#parser ??= this.#createParser(bytes, start, end);
    const request = this.#parser.parse(bytes, start, end);
    if (request === noRequest) return;
    if (request === undefined) {
      this.#countUnreadable(bytes.toString("utf8", start, Math.min(end, start + exampleLength)));
      return;
    }
    const second = this.#ordered.add(request);
    if (second > this.latestSecond) this.latestSecond = second;
  }

  #createParser(bytes: Buffer, start: number, end: number): LineParser {
    const line = bytes.toString("utf8", start, end);
    this.#format = this.#options.format ?? detectFormat(line);
    return createLineParser(this.#format, this.#options, line);
  }

  #countUnreadable(text: string): void {
    this.#totals.unreadable += 1;
    const { examples } = this.#totals;
    if (examples.length < mostExamples) examples.push({ file: this.#name, line: this.#lines, text });
  }
}
