/** What was sent is not a command, so it is unknown where the next one begins. The client gets the message as it is. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}
