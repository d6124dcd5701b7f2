/** Controls one exchange, as undici's own controllers do. */
export interface Controller {
  readonly aborted: boolean;
  readonly paused: boolean;
  readonly reason: Error | null;
  rawHeaders?: unknown;
  rawTrailers?: unknown;
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

/** The handler of undici 7 and later. Header fields are passed on as they come. */
export interface Handler {
  onRequestStart?(controller: Controller, context: unknown): void;
  onRequestUpgrade?(controller: Controller, status: number, headers: unknown, socket: unknown): void;
  onResponseStart?(controller: Controller, status: number, headers: unknown, statusText?: string): void;
  onResponseData?(controller: Controller, chunk: Uint8Array): void;
  onResponseEnd?(controller: Controller, trailers: unknown): void;
  onResponseError?(controller: Controller, error: Error): void;
  onResponseStarted?(): void;
  onBodySent?(chunk: unknown): void;
  onRequestSent?(): void;
}

/** The handler of version 6: returning false pauses the answer. */
export interface OldHandler {
  onConnect?(abort: (reason?: Error) => void, context?: unknown): void;
  onUpgrade?(status: number, headers: unknown, socket: unknown): void;
  onHeaders?(status: number, headers: unknown, resume: () => void, statusText: string): boolean | undefined;
  onData?(chunk: Uint8Array): boolean | undefined;
  onComplete?(trailers: unknown): void;
  onError?(error: Error): void;
  onResponseStarted?(): void;
  onBodySent?(chunk: unknown, total?: number): void;
}

export function isOldHandler(handler: Handler | OldHandler): handler is OldHandler {
  return !("onRequestStart" in handler) && "onConnect" in handler;
}

/** Wraps a handler of undici 6 as a newer one. */
export function handlerFromOld(old: OldHandler): Handler {
  return {
    onRequestStart: (controller, context) =>
      old.onConnect?.((reason) => controller.abort(reason ?? new Error("aborted")), context),
    onRequestUpgrade: (_controller, status, headers, socket) => old.onUpgrade?.(status, headers, socket),
    onResponseStart(controller, status, headers, statusText = "") {
      if (old.onHeaders?.(status, headers, () => controller.resume(), statusText) === false) controller.pause();
    },
    onResponseData(controller, chunk) {
      if (old.onData?.(chunk) === false) controller.pause();
    },
    onResponseEnd: (_controller, trailers) => old.onComplete?.(trailers),
    onResponseError: (_controller, error) => old.onError?.(error),
    onResponseStarted: () => old.onResponseStarted?.(),
    onBodySent: (chunk) => old.onBodySent?.(chunk),
  };
}

/** Wraps a newer handler for undici 6. */
export function oldFromHandler(handler: Handler): OldHandler {
  let controller: OldController | undefined;
  return {
    onConnect(abort, context) {
      controller = new OldController(abort);
      handler.onRequestStart?.(controller, context);
    },
    onUpgrade: (status, headers, socket) => handler.onRequestUpgrade?.(controller!, status, headers, socket),
    onHeaders(status, headers, resume, statusText) {
      controller!.onResume = resume;
      handler.onResponseStart?.(controller!, status, headers, statusText);
      return !controller!.paused;
    },
    onData(chunk) {
      handler.onResponseData?.(controller!, chunk);
      return !controller!.paused;
    },
    onComplete: (trailers) => handler.onResponseEnd?.(controller!, trailers),
    // May be called before there is a connection, and so before there is a controller.
    onError: (error) => handler.onResponseError?.(controller ?? new OldController(() => undefined), error),
    onResponseStarted: () => handler.onResponseStarted?.(),
    onBodySent: (chunk) => handler.onBodySent?.(chunk),
  };
}

class OldController implements Controller {
  readonly #abort: (reason?: Error) => void;
  onResume: (() => void) | undefined;
  aborted = false;
  paused = false;
  reason: Error | null = null;

  constructor(abort: (reason?: Error) => void) {
    this.#abort = abort;
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.#abort(reason);
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.onResume?.();
  }
}
