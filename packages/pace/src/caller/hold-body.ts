/** A body that waits to be sent. */
export interface HeldBody {
  /** It is about to be sent, and is somebody else's from now on. */
  release(): void;
  /** It is not going to be sent. Does nothing once it was released. */
  discard(reason: unknown): void;
}

/**
 * Looks after a body while its call waits. Nobody listens to a stream before it is sent: one that breaks would end the
 * process, and one that is never sent would stay open. Other bodies need nothing.
 */
export function holdBody(body: unknown, onBreak: (error: unknown) => void = ignore): HeldBody {
  if (isNodeStream(body)) {
    let held = true;
    body.on("error", onBreak);
    return {
      release() {
        held = false;
        body.off("error", onBreak);
      },
      discard() {
        if (!held) return;
        held = false;
        // What it says from now on is of no use to anybody.
        body.on("error", ignore);
        body.off("error", onBreak);
        body.destroy();
      },
    };
  }
  if (!(body instanceof ReadableStream)) return nothingHeld;
  let held = true;
  return {
    release() {
      held = false;
    },
    discard(reason) {
      if (held && !body.locked) body.cancel(reason).catch(ignore);
      held = false;
    },
  };
}

function ignore(): void {
  // There is nobody to be told.
}

const nothingHeld: HeldBody = { release: ignore, discard: ignore };

/** As much of a stream of Node's as is needed, of whichever implementation. */
interface NodeStream {
  on(event: "error", listener: (error: unknown) => void): unknown;
  off(event: "error", listener: (error: unknown) => void): unknown;
  destroy(): unknown;
}

function isNodeStream(body: unknown): body is NodeStream {
  if (typeof body !== "object" || body === null) return false;
  const { on, off, destroy, pipe } = body as Readonly<Record<string, unknown>>;
  return [on, off, destroy, pipe].every((method) => typeof method === "function");
}
