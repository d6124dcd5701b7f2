/** A body that waits to be sent. */
export interface HeldBody {
  /** It is about to be sent; from now on the sender owns it. */
  release(): void;
  /** It will not be sent. Does nothing after `release`. */
  discard(reason: unknown): void;
}

/**
 * Looks after a body while its call waits. A stream has no listeners before it is sent: one that breaks would crash the
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
        // Errors from now on are ignored.
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
  // No caller is left to report it to.
}

const nothingHeld: HeldBody = { release: ignore, discard: ignore };

/** The part of a Node stream that is needed, of any implementation. */
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
