import { fileSource, type LogSource, streamSource } from "@sluice/simulate/logs";
import { CommandError, type Terminal } from "../terminal/terminal.ts";

/** The logs that a command names: files, or `-` for standard input. */
export async function openLogs(logs: readonly string[], { stdin }: Terminal): Promise<readonly LogSource[]> {
  if (logs.filter((log) => log === "-").length > 1) throw new CommandError("- is standard input, and can be read once");
  return Promise.all(
    logs.map(async (log) => {
      if (log !== "-")
        return fileSource(log).catch((error: Error) => {
          throw new CommandError(`${JSON.stringify(log)} cannot be read: ${error.message}`);
        });
      if (stdin === undefined) throw new CommandError("there is no standard input to read");
      return streamSource("-", stdin as AsyncIterable<Buffer | string>);
    }),
  );
}
