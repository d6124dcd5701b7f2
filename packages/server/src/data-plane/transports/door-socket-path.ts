import { lstat, unlink } from "node:fs/promises";
import { connect } from "node:net";

/** The kernel's bound, less the zero at the end. */
const maxPathBytes = 107;

/** Why a path cannot be listened on, as `cannot listen on …:` continues. */
export class SocketPathError extends Error {
  override readonly name = "SocketPathError";
}

/**
 * Makes room for a unix socket: a socket that nobody listens on any more, left by a process that was killed, is removed.
 * Throws where somebody does listen, or where something else has that name.
 */
export async function clearSocketPath(path: string): Promise<void> {
  if (Buffer.byteLength(path) > maxPathBytes)
    throw new SocketPathError(`a path of a unix socket has at most ${maxPathBytes} bytes; choose a shorter one`);
  if (Number(path) >= 0)
    throw new SocketPathError(
      `${JSON.stringify(path)} could be a port as well; write ./${path} for a file of that name`,
    );
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new SocketPathError(`it cannot be looked at (${error.code})`);
  });
  if (found === undefined) return;
  if (!found.isSocket())
    throw new SocketPathError("something that is no socket has that name; remove it, or choose another");
  if (await isListenedOn(path))
    throw new SocketPathError("another process listens there already; stop it, or choose another path");
  await unlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT")
      throw new SocketPathError(`a socket that nobody listens on cannot be removed (${error.code})`);
  });
}

/** Anything but a plain refusal counts as somebody: one too many is let be, rather than one too few. */
function isListenedOn(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", (error: NodeJS.ErrnoException) =>
      resolve(!["ECONNREFUSED", "ENOENT"].includes(error.code ?? "")),
    );
  });
}
