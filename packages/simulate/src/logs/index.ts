/** Reads access logs as requests for a simulation. Needs Node. */
export { type FieldMap, type FieldSource, parseFieldMap } from "./field-map.ts";
export { findSampledBy } from "./find-sampled-by.ts";
export type { LineParser, LineParserOptions } from "./line-parser.ts";
export { createLineParser, detectFormat, type LogFormat, logFormats } from "./log-formats.ts";
export { type LogReaderOptions, type LogTotals, LogUnreadable, type UnreadableLine } from "./log-reader.ts";
export { fileSource, type LogSource, readBytes, streamSource } from "./open-log.ts";
export { maxLogs, type ReadLogs, type ReadLogsOptions, readLogs } from "./read-logs.ts";
