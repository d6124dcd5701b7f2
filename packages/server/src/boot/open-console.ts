import { findConsoleFolder, readConsoleFiles } from "../control-plane/admin-api/browser/console-files.ts";
import type { ConsoleOptions } from "../control-plane/admin-api/server.ts";
import { SignInCodes } from "../control-plane/sessions/sign-in-codes.ts";
import type { Logger } from "../observe/telemetry/logger.ts";
import type { WorkerLink } from "../observe/worker-link.ts";
import type { Settings } from "../settings/settings.ts";

export interface OpenConsoleOptions {
  readonly settings: Settings;
  readonly log: Logger;
  readonly worker: WorkerLink | undefined;
}

/** What the admin port has for browsers. A console that cannot be read is logged, and does not keep the server from starting. */
export async function openConsole({ settings, log, worker }: OpenConsoleOptions): Promise<ConsoleOptions> {
  return {
    host: settings.host,
    hosts: settings.consoleHosts,
    files: settings.console ? await readFiles(log) : "off",
    codes: new SignInCodes({ worker }),
  };
}

async function readFiles(log: Logger): Promise<ConsoleOptions["files"]> {
  const folder = findConsoleFolder();
  if (folder === undefined) return "missing";
  try {
    return await readConsoleFiles(folder);
  } catch (error) {
    log.error("console.unreadable", { reason: error instanceof Error ? error.message : String(error) });
    return "missing";
  }
}

/** Whether there is a console to open. */
export function hasConsole(console: ConsoleOptions | undefined): boolean {
  return console !== undefined && typeof console.files !== "string";
}

/** The path and fragment that sign in the person who sees the server start. Undefined if there is no console to open. */
export function makeStartLink({ files, codes }: ConsoleOptions): string | undefined {
  if (typeof files === "string") return undefined;
  const made = codes.make({ kind: "new admin" }, "start");
  return made && `/#code=${made.code}`;
}
