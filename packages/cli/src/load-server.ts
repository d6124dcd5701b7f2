import { CommandError } from "./terminal/terminal.ts";
import { version } from "./version.ts";

/** What `@sluice/server` does for this command. */
export type ServerCommands = typeof import("@sluice/server/command");

/** The server, or undefined if it is not installed: a laptop that only asks servers does not need it. */
export async function findServerCommands(): Promise<ServerCommands | undefined> {
  try {
    return await import("@sluice/server/command");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** The same, but if it is not installed this fails, and says what to install. `what` needs it: `sluice serve`. */
export async function loadServerCommands(what: string): Promise<ServerCommands> {
  const server = await findServerCommands();
  if (server === undefined) throw new CommandError(`${what} needs the server. ${whatToInstall}`);
  return server;
}

export const whatToInstall: string = `Install it where this command is installed:
  npm install @sluice/server@${version}        next to a local @sluice/cli
  npm install -g @sluice/server@${version}     if @sluice/cli was installed with -g`;

/** Runs something of the server's. What it says to the user of a command becomes this command's own error. */
export async function runInServer<T>(server: ServerCommands, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof server.CommandFailure) throw new CommandError(error.message, error.exitCode);
    throw error;
  }
}

/** Whether the package itself is missing. Something that it needs and does not find is another mistake. */
function isMissing(error: unknown): boolean {
  const { code, message = "" } = error as NodeJS.ErrnoException;
  return code === "ERR_MODULE_NOT_FOUND" && message.includes("'@sluice/server'");
}
