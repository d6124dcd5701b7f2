/** What keeps a command from doing its work, in a sentence for its user, and the exit code for it. */
export class CommandFailure extends Error {
  override readonly name: string = "CommandFailure";
  readonly exitCode: 2 | 4 | 5;

  constructor(message: string, exitCode: 2 | 4 | 5 = 2) {
    super(message);
    this.exitCode = exitCode;
  }
}
