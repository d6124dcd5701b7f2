import { type LogEvent, logEvents } from "../observe/telemetry/log-events.ts";
import type { Logger } from "../observe/telemetry/logger.ts";

export interface LoggedLine {
  readonly level: keyof Logger;
  readonly event: LogEvent;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** A log that passes on each line. */
export function createRecordingLog(record: (line: LoggedLine) => void): Logger {
  const write =
    (level: keyof Logger): Logger["info"] =>
    (event, fields = {}) =>
      record({ level, event, fields, message: logEvents[event] });
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}
