import type { Caller, Callers } from "../caller/callers.ts";
import { sleep } from "../schedule.ts";
import type { Controller, Handler } from "./dispatch-handler.ts";

/** Longer answers are cut off rather than read: a new connection costs less. */
const maxReadBytes = 64 * 1024;

export interface ExchangeOptions {
  readonly callers: Callers;
  readonly caller: Caller;
  readonly repeatable: boolean;
  /** The caller's handler, which sees one exchange, however many attempts there are. */
  readonly handler: Handler;
  /** Makes one attempt with this handler. */
  readonly dispatch: (handler: Handler) => void;
  /** Called once if it ends with an error. */
  readonly onFail: (error: Error) => void;
}

export function errorFromReason(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason), { cause: reason });
}

/**
 * One exchange as the caller sees it. Its handler gets one controller for all of it, at once, so that it can abort during a
 * wait; behind that there is a wait for a turn, then an attempt, and perhaps a wait and another attempt. The handler
 * receives an answer's beginning, data and end, or an error, once.
 */
export class Exchange implements Controller {
  readonly #options: ExchangeOptions;
  readonly #aborting = new AbortController();
  readonly #context = {};
  /** The controller of the running attempt; undefined while waiting. */
  #target: Controller | undefined;
  #paused = false;
  #ended = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { callers, caller, handler } = this.#options;
    const { signal } = this.#aborting;
    try {
      handler.onRequestStart?.(this, this.#context);
      for (let attempt = 1; ; attempt += 1) {
        const refused = await caller.run(attempt, () => this.#attempt(attempt), signal);
        if (refused === undefined) return;
        const { waitMs, status, cutOff } = refused;
        try {
          caller.announce({ attempt, waitMs, status });
          await sleep(waitMs, callers.schedule, signal);
        } finally {
          cutOff();
        }
      }
    } catch (error) {
      this.#fail(errorFromReason(error));
    }
  }

  /** Resolves as soon as it is known whether this attempt is the last, and if it is not, with what to do next. */
  #attempt(attempt: number): Promise<Refused | undefined> {
    return new Promise((resolve, reject) => {
      this.#options.dispatch(this.#createHandler(attempt, resolve, reject));
    });
  }

  #createHandler(attempt: number, resolve: (refused?: Refused) => void, reject: (error: unknown) => void): Handler {
    const { handler, caller, repeatable } = this.#options;
    /** Once an answer is refused, the rest of it is read and dropped. */
    let discarding = false;
    let over = false;
    let readBytes = 0;
    const end = (): void => {
      over = true;
      resolve();
    };
    return {
      onRequestStart: (controller, context) => {
        // Aborted after its turn came: pass that on as soon as undici provides a controller.
        if (this.aborted) {
          controller.abort(this.reason ?? new Error("aborted"));
          return;
        }
        this.#target = controller;
        Object.assign(this.#context, context);
        if (this.#paused) controller.pause();
      },
      onRequestUpgrade: (_controller, status, headers, socket) => {
        end();
        this.#ended = true;
        handler.onRequestUpgrade?.(this, status, headers, socket);
      },
      onResponseStart: (controller, status, headers, statusText) => {
        if (status >= 200) {
          const waitMs = caller.judge({ attempt, status, headers: headers as Record<string, unknown>, repeatable });
          if (waitMs !== undefined) {
            discarding = true;
            this.#target = undefined;
            const cutOff = (): void => {
              if (!over)
                controller.abort(new Error("the server refused the request, and its answer is not read to its end"));
            };
            resolve({ waitMs, status, cutOff });
            return;
          }
          resolve();
        }
        handler.onResponseStart?.(this, status, headers, statusText);
      },
      onResponseData: (controller, chunk) => {
        if (!discarding) {
          handler.onResponseData?.(this, chunk);
          return;
        }
        readBytes += chunk.byteLength;
        if (readBytes > maxReadBytes)
          controller.abort(new Error("the server refused the request, and its answer is too long to read to its end"));
      },
      onResponseEnd: (_controller, trailers) => {
        end();
        if (discarding) return;
        this.#ended = true;
        handler.onResponseEnd?.(this, trailers);
      },
      onResponseError: (_controller, error) => {
        over = true;
        if (discarding) return;
        reject(error);
        this.#fail(error);
      },
      onResponseStarted: () => handler.onResponseStarted?.(),
      onBodySent: (chunk) => handler.onBodySent?.(chunk),
      onRequestSent: () => handler.onRequestSent?.(),
    };
  }

  #fail(error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#options.onFail(error);
    this.#options.handler.onResponseError?.(this, error);
  }

  /** Takes effect at once, also during a wait; a connection that is still being opened is dropped afterwards. */
  abort(reason: Error): void {
    if (this.#aborting.signal.aborted || this.#ended) return;
    this.#aborting.abort(reason);
    if (this.#target === undefined) this.#fail(reason);
    else this.#target.abort(reason);
  }

  pause(): void {
    this.#paused = true;
    this.#target?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#target?.resume();
  }

  get aborted(): boolean {
    return this.#aborting.signal.aborted;
  }

  get paused(): boolean {
    return this.#paused;
  }

  get reason(): Error | null {
    const { aborted, reason } = this.#aborting.signal;
    return aborted ? (reason as Error) : null;
  }

  get rawHeaders(): unknown {
    return this.#target?.rawHeaders;
  }

  set rawHeaders(headers: unknown) {
    if (this.#target !== undefined) this.#target.rawHeaders = headers;
  }

  get rawTrailers(): unknown {
    return this.#target?.rawTrailers;
  }

  set rawTrailers(trailers: unknown) {
    if (this.#target !== undefined) this.#target.rawTrailers = trailers;
  }
}

/** An attempt whose answer is not the last. */
interface Refused {
  readonly waitMs: number;
  readonly status: number;
  /** Stops reading the rest of the answer. */
  readonly cutOff: () => void;
}
