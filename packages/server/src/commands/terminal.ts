import type { TextOutput } from "../telemetry/logger.ts";

/** Where a command writes: answers to stdout, everything about them to stderr. */
export interface Terminal {
  readonly stdout: TextOutput;
  readonly stderr: TextOutput;
}

/** 0: allowed, or all is well. 1: denied, or policies with errors. 2: the command could not do its work. */
export type ExitCode = 0 | 1 | 2;

/** What keeps a command from doing its work, in a sentence for its user. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}
