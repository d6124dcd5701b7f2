import type { Dispatcher } from "undici";
import { type CallerOptions, Callers, callerNames, foreignNames } from "../caller/callers.ts";
import { holdBody } from "../caller/hold-body.ts";
import { checkNames, checkOptions, type OptionNames } from "../check-options.ts";
import { isReadOnce } from "../retry/is-read-once.ts";
import { isRepeatable, isReplayableBody } from "../retry/retry-rules.ts";
import { type Handler, handlerFromOld, isOldHandler, type OldHandler, oldFromHandler } from "./dispatch-handler.ts";
import { Exchange, errorFromReason } from "./exchange.ts";

/** The request that undici is about to send: the parts that rules read. */
export interface DispatchOutline {
  readonly origin?: string | URL | undefined;
  readonly path: string;
  readonly method: string;
  readonly headers?: unknown;
  readonly body?: unknown;
}

export interface CreateInterceptorOptions extends CallerOptions {
  /** Requests with the same key share a pace and a budget. Default: the origin. */
  readonly key?: ((request: DispatchOutline) => string) | undefined;
  /** Whether a request may be sent twice. Absent, or if it returns undefined: by its method and its `Idempotency-Key`. */
  readonly repeatable?: ((request: DispatchOutline) => boolean | undefined) | undefined;
}

const optionNames: OptionNames<CreateInterceptorOptions> = { ...callerNames, key: true, repeatable: true };

/**
 * An interceptor for `dispatcher.compose`, by the same rules as `createFetch`. For undici 6 (6.20 and later), 7 and 8.
 * Upgrades and CONNECT pass untouched.
 */
export function createInterceptor(options: CreateInterceptorOptions = {}): Dispatcher.DispatcherComposeInterceptor {
  checkOptions(options, { key: "function", repeatable: "function" });
  checkNames("createInterceptor", options, optionNames, foreignNames);
  const callers = new Callers(options);
  const chooseKey = options.key ?? (({ origin }) => String(origin ?? ""));

  const intercept =
    (dispatch: AnyDispatch): AnyDispatch =>
    (request, handler) => {
      if (request.method === "CONNECT" || request.upgrade) return dispatch(request, handler);
      const caller = callers.find(chooseKey(request));
      caller.begin();
      const old = isOldHandler(handler);
      const body = holdBody(request.body, (error) => exchange.abort(errorFromReason(error)));
      const exchange: Exchange = new Exchange({
        callers,
        caller,
        repeatable: mayRepeat(request, options.repeatable),
        handler: old ? handlerFromOld(handler) : handler,
        dispatch(attempt) {
          body.release();
          dispatch(request, old ? oldFromHandler(attempt) : attempt);
        },
        onFail: body.discard,
      });
      void exchange.run();
      return true;
    };
  // undici's types are those of one version, and this supports three, which behave the same here.
  return intercept as unknown as Dispatcher.DispatcherComposeInterceptor;
}

type AnyDispatch = (
  request: DispatchOutline & { readonly upgrade?: unknown },
  handler: Handler | OldHandler,
) => boolean;

function mayRepeat(request: DispatchOutline, declared: CreateInterceptorOptions["repeatable"]): boolean {
  if (!isReplayableBody(request.body) || isReadOnce(request.headers)) return false;
  const { method, headers } = request;
  return isRepeatable({ method, idempotencyKey: hasIdempotencyKey(headers), repeatable: declared?.(request) });
}

/** Headers are a record, names and values in turn, or pairs. A key without a value does not count. */
function hasIdempotencyKey(headers: unknown): boolean {
  if (typeof headers !== "object" || headers === null) return false;
  let pairs: readonly (readonly unknown[])[];
  if (Array.isArray(headers)) pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1]]] : []));
  else if (Symbol.iterator in headers) pairs = [...(headers as Iterable<readonly unknown[]>)];
  else pairs = Object.entries(headers);
  return pairs.some(([name, value]) => String(name).toLowerCase() === "idempotency-key" && hasText(value));
}

function hasText(value: unknown): boolean {
  return value !== undefined && value !== null && String(value) !== "";
}
