import { type CallerOptions, Callers, callerNames, foreignNames } from "../caller/callers.ts";
import { checkNames, checkOptions, type OptionNames } from "../check-options.ts";
import { isRepeatable } from "../retry/retry-rules.ts";
import { sleep } from "../schedule.ts";
import { discardBody } from "./discard-body.ts";
import { findUrl, OutgoingRequest, type RequestOutline } from "./outgoing-request.ts";

export interface CreateFetchOptions extends CallerOptions {
  /** Sends requests. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Calls with the same key share a pace and a budget. Default: the origin of the URL. */
  readonly key?: ((request: RequestOutline) => string) | undefined;
  /** Whether a request may be sent twice. Absent, or if it returns undefined: by its method and its `Idempotency-Key`. */
  readonly repeatable?: ((request: RequestOutline) => boolean | undefined) | undefined;
  /** Whether repeatable requests are also sent again after network errors. Default: false. */
  readonly networkErrors?: boolean | undefined;
}

const optionNames: OptionNames<CreateFetchOptions> = {
  ...callerNames,
  fetch: true,
  key: true,
  repeatable: true,
  networkErrors: true,
};

/**
 * A `fetch` that keeps to limits: it waits for its turn, slows down before a limit is reached, and repeats requests that
 * were refused for now and may be repeated. It always resolves with the server's own last answer, unchanged. It rejects as
 * `fetch` does; with the signal's reason as soon as that aborts, also while waiting; and with a `PaceError` if no turn
 * comes within `maxWaitMs`, in which case nothing was sent.
 */
export function createFetch(options: CreateFetchOptions = {}): typeof globalThis.fetch {
  checkOptions(options, {
    fetch: "function",
    key: "function",
    repeatable: "function",
    networkErrors: "boolean",
  });
  checkNames("createFetch", options, optionNames, foreignNames);
  const callers = new Callers(options);
  // Looked up at each call, so that replacing the global `fetch` takes effect.
  const send: typeof globalThis.fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  const chooseKey = options.key ?? (({ url }) => url.origin);

  return async (input, init) => {
    const url = findUrl(input);
    if (url === undefined) return send(input, init);
    const request = new OutgoingRequest(url, input, init);
    try {
      const repeatable = request.replayable && mayRepeat(request, options.repeatable);
      const caller = callers.find(chooseKey(request));
      caller.begin();
      for (let attempt = 1; ; attempt += 1) {
        const last = !repeatable || attempt >= callers.rules.maxAttempts;
        const makeAttempt = async (): Promise<Attempted> => {
          try {
            const response = await request.send(send, last);
            const { status, headers } = response;
            const waitMs = caller.judge({ attempt, status, headers, repeatable });
            return waitMs === undefined ? { kind: "answered", response } : { kind: "refused", response, waitMs };
          } catch (error) {
            const repeats = repeatable && options.networkErrors === true && isNetworkError(error);
            const waitMs = repeats ? caller.judgeFailure(attempt) : undefined;
            if (waitMs === undefined) throw error;
            return { kind: "refused", response: undefined, waitMs };
          }
        };
        const attempted = await caller.run(attempt, makeAttempt, request.signal);
        if (attempted.kind === "answered") return attempted.response;
        const { response, waitMs } = attempted;
        const endDiscarding = discardBody(response?.body);
        try {
          caller.announce({ attempt, waitMs, status: response?.status });
          await sleep(waitMs, callers.schedule, request.signal);
        } finally {
          endDiscarding();
        }
      }
    } catch (error) {
      request.fail(error);
      throw error;
    } finally {
      request.finish();
    }
  };
}

/** An attempt that is over: its answer is final, or it will be made again after a wait. */
type Attempted =
  | { readonly kind: "answered"; readonly response: Response }
  | { readonly kind: "refused"; readonly response: Response | undefined; readonly waitMs: number };

function mayRepeat(request: RequestOutline, declared: CreateFetchOptions["repeatable"]): boolean {
  const { method } = request;
  const repeatable = declared?.(request);
  // Reading headers takes time, and most methods do not need it.
  if (isRepeatable({ method, idempotencyKey: false, repeatable })) return true;
  return isRepeatable({ method, idempotencyKey: Boolean(request.headers.get("idempotency-key")), repeatable });
}

/** `fetch` rejects with a `TypeError` for lost connections and for mistakes alike; the former have a cause. */
function isNetworkError(error: unknown): boolean {
  return error instanceof TypeError && error.cause instanceof Error;
}
