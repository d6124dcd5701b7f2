import { fileSource, type LogSource, logFormats, streamSource } from "@sluice/simulate/logs";
import { type Command, Option } from "commander";
import { collect } from "../arguments/collect.ts";
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

/** The options that say how to read the logs. */
export function addLogOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--format <name>", "the form of the logs (default: found out by the first line)").choices(logFormats),
    )
    .option("--map <name=where>", "where a dimension is, such as tenant=header:x-tenant; may be repeated", collect);
}
