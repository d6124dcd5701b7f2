import type { Logger } from "../observe/telemetry/logger.ts";

export interface LoggedLine {
  readonly level: keyof Logger;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** A log that hands each line over. */
export function createRecordingLog(record: (line: LoggedLine) => void): Logger {
  const write =
    (level: keyof Logger): Logger["info"] =>
    (fields, message) =>
      record({ level, fields, message });
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}
