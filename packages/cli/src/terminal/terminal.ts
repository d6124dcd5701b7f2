/** Where a command writes: answers to stdout, everything about them to stderr. */
export interface Terminal {
  readonly stdout: TerminalOutput;
  readonly stderr: TerminalOutput;
  /** Where answers of people are read from, and what `-` stands for. Absent: there is no one to ask. */
  readonly stdin?: TerminalInput;
}

export interface TerminalOutput {
  write(text: string): unknown;
  /** Whether people look at it. */
  readonly isTTY?: boolean | undefined;
  /** How many characters a line of theirs has, and how many lines they see. */
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

export type TerminalInput = NodeJS.ReadableStream & {
  readonly isTTY?: boolean | undefined;
  /** Of a terminal: whether keys are handed over one by one, and not line by line. */
  setRawMode?(raw: boolean): unknown;
};

/**
 * 0: allowed, done, or all is well. 1: denied, different, not done, or policies with errors. 2: wrong usage, or the command
 * could not do its work. Of commands that ask a control plane besides: 3: refused for want of a token or of a role. 4: what was
 * to be changed is not as it was. 5: the control plane cannot be reached, or not asked now. 6: timed out waiting.
 */
export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5 | 6;

/** What keeps a command from doing its work, in a sentence for its user. */
export class CommandError extends Error {
  override readonly name: string = "CommandError";
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = 2) {
    super(message);
    this.exitCode = exitCode;
  }
}
