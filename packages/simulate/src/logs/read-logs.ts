import { everyDimension } from "../replay/prepare-policies.ts";
import type { RecordingFacts } from "../replay/recording-lines.ts";
import type { SimulatedRequest } from "../replay/simulated-request.ts";
import { LogReader, type LogReaderOptions, type LogTotals } from "./log-reader.ts";
import type { LogSource } from "./open-log.ts";
import { OrderedRequests } from "./ordered-requests.ts";

export interface ReadLogsOptions extends Partial<LogReaderOptions> {
  /** How many seconds a line may be behind the latest one of its file. Absent: 10. */
  readonly windowSeconds?: number | undefined;
  /** How many requests wait at most to be put in order. Absent: 500 000. */
  readonly maxWaiting?: number | undefined;
  /** Called after every chunk. */
  readonly onProgress?: ((totals: Readonly<LogTotals>) => void) | undefined;
  /** Waited for before every chunk, by a reader that is slower than the logs. `false` ends reading. */
  readonly whenReady?: (() => Promise<boolean>) | undefined;
  /** Called with what the logs carry, and what recordings among them say about themselves so far, before the first request. */
  readonly onCarried?: ((carried: readonly string[], recordings: readonly RecordingFacts[]) => void) | undefined;
}

export interface ReadLogs extends Readonly<LogTotals> {
  /** Lines that were too far behind their file to be put in order. They were left out. */
  readonly late: number;
  /** The format of each log, in order; undefined if it is empty. */
  readonly formats: readonly (string | undefined)[];
  /** What the recordings among them say about themselves. */
  readonly recordings: readonly RecordingFacts[];
}

const usualWindowSeconds = 10;
const usualWaiting = 500_000;
/** Each keeps a file open and a chunk in memory. */
export const maxLogs = 256;

/** Reads logs together, and hands their requests over in order of time. */
export async function readLogs(
  sources: readonly LogSource[],
  onRequest: (request: SimulatedRequest) => void,
  options: ReadLogsOptions = {},
): Promise<ReadLogs> {
  if (sources.length > maxLogs)
    throw new RangeError(
      `${sources.length} logs are too many to be merged; name at most ${maxLogs}, or concatenate them`,
    );
  const { windowSeconds = usualWindowSeconds, maxWaiting = usualWaiting, onProgress } = options;
  const totals: LogTotals = { lines: 0, unreadable: 0, examples: [], readBytes: 0 };
  const ordered = new OrderedRequests({ windowSeconds, maxWaiting }, onRequest);
  const reading = {
    format: options.format,
    map: options.map ?? new Map(),
    deniedStatuses: options.deniedStatuses ?? new Set([429]),
    isOnly: sources.length === 1,
    maxTextBytes: options.maxTextBytes,
  };
  const readers = sources.map((source) => new LogReader(source, reading, totals, ordered));
  try {
    // Every log has to begin before it is known which is the earliest, and what they carry.
    for (const reader of readers) await readUntilRequest(reader);
    options.onCarried?.(carriedByAll(readers), listRecordings(readers));
    for (;;) {
      const behind = findBehind(readers);
      if (behind === undefined) break;
      if (options.whenReady !== undefined && !(await options.whenReady())) break;
      ordered.advanceTo(behind.latestSecond);
      await behind.readOn();
      onProgress?.(totals);
    }
    ordered.finish();
  } finally {
    for (const reader of readers) await reader.close();
  }
  return {
    ...totals,
    late: ordered.late,
    formats: readers.map(({ format }) => format),
    recordings: listRecordings(readers),
  };
}

async function readUntilRequest(reader: LogReader): Promise<void> {
  while (!reader.isDone && reader.latestSecond === Number.NEGATIVE_INFINITY) await reader.readOn();
}

/** The reader that has come least far. */
function findBehind(readers: readonly LogReader[]): LogReader | undefined {
  let behind: LogReader | undefined;
  for (const reader of readers)
    if (!reader.isDone && (behind === undefined || reader.latestSecond < behind.latestSecond)) behind = reader;
  return behind;
}

/** What every log carries: a dimension that one lacks would make its requests share a counter. */
function carriedByAll(readers: readonly LogReader[]): readonly string[] {
  const all = readers.filter(({ format }) => format !== undefined).map(({ carried }) => carried);
  const [first, ...others] = all.filter((carried) => !carried.includes(everyDimension));
  if (first === undefined) return all[0] ?? [];
  return first.filter((name) => others.every((carried) => carried.includes(name)));
}

function listRecordings(readers: readonly LogReader[]): readonly RecordingFacts[] {
  return readers.map(({ recording }) => recording).filter((recording) => recording !== undefined);
}
