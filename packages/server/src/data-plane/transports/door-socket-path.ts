import { lstat, unlink } from "node:fs/promises";
import { connect } from "node:net";

/** The kernel's limit, less the terminating zero. */
const maxPathBytes = 107;

/** Why a path cannot be listened on, completing `cannot listen on …:`. */
export class SocketPathError extends Error {
  override readonly name = "SocketPathError";
}

/**
 * Makes room for a unix socket: an abandoned one, left by a process that was killed, is removed. Throws if a process
 * listens on it, or something else has that name.
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
    throw new SocketPathError(`it cannot be read (${error.code})`);
  });
  if (found === undefined) return;
  if (!found.isSocket())
    throw new SocketPathError("something that is not a socket has that name; remove it, or choose another");
  if (await isListenedOn(path))
    throw new SocketPathError("another process listens there already; stop it, or choose another path");
  await unlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw new SocketPathError(`an abandoned socket cannot be removed (${error.code})`);
  });
}

/** Anything but a plain refusal counts as a listener: better to leave one socket too many than one too few. */
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
