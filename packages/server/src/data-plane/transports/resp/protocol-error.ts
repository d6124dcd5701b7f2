/** What was sent is no command: nobody can tell where the next one would begin. The message is told as it is. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}
