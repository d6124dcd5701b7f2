import { InterceptingCall, type Interceptor, type Metadata, type NextCall } from "@grpc/grpc-js";
import { type Caller, Callers, foreignNames, type SharedOptions, sharedNames } from "../caller/callers.ts";
import { checkNames, checkOptions, type OptionNames } from "../check-options.ts";
import { findDeadlineMs } from "./find-deadline-ms.ts";
import { PacedCall } from "./paced-call.ts";
import { readRequestedWait } from "./read-requested-wait.ts";
import { RepeatingCall } from "./repeating-call.ts";

/** A call before it is made: the parts that rules read. */
export interface CallOutline {
  /** `/package.Service/Method` */
  readonly path: string;
  /** The channel's target, as grpc-js writes it: `dns:api.example:443`. */
  readonly target: string;
  readonly metadata: Metadata;
}

export interface CreateInterceptorOptions extends SharedOptions {
  /** The methods that may run twice, by path (`/package.Service/Method`), or a function that decides. Default: none. */
  readonly repeatable?: readonly string[] | ((path: string) => boolean) | undefined;
  /** Calls with the same key share a pace and a budget. Default: the channel's target. */
  readonly key?: ((call: CallOutline) => string) | undefined;
  /** Called before each wait for another attempt. */
  readonly onWait?: ((event: CallWaitEvent) => void) | undefined;
}

/** A call failed, and will be made again after a wait. */
export interface CallWaitEvent {
  readonly path: string;
  /** The attempt that failed, starting at 1. */
  readonly attempt: number;
  readonly waitMs: number;
  /** The status code it was refused with. */
  readonly code: number;
}

const optionNames: OptionNames<CreateInterceptorOptions> = {
  ...sharedNames,
  repeatable: true,
  key: true,
  onWait: true,
};

/**
 * A client interceptor for `@grpc/grpc-js` that keeps to limits. Calls of all four kinds wait for their turn, and slow down
 * before a limit is reached. A refused call is made again when the server allows it, if its method is declared repeatable
 * and it is a unary call, or one with a stream of answers of which none has arrived. Never beyond the call's deadline, and
 * cancelling works during a wait too. If no turn comes within `maxWaitMs`, the status is RESOURCE_EXHAUSTED, the error's
 * `cause` is a `PaceError`, and nothing was sent.
 */
export function createInterceptor(options: CreateInterceptorOptions = {}): Interceptor {
  checkOptions(options, { repeatable: "names or function", key: "function", onWait: "function" });
  checkNames("createInterceptor", options, optionNames, foreignNames);
  const { repeatable = [], key: chooseKey = ({ target }) => target, onWait, ...shared } = options;
  const callers = new Callers(shared);
  const { clock, schedule } = callers;
  const isRepeatable = typeof repeatable === "function" ? repeatable : (path: string) => repeatable.includes(path);

  return (callOptions, nextCall) => {
    const { path, requestStream } = callOptions.method_definition;
    let caller: Caller | undefined;
    const findCaller = (metadata: Metadata, target: string): Caller => {
      if (caller !== undefined) return caller;
      caller = callers.find(chooseKey({ path, target, metadata }));
      caller.begin();
      return caller;
    };
    const paced: NextCall = (attempt) => new PacedCall({ options: attempt, nextCall, findCaller, clock, schedule });
    if (requestStream || !isRepeatable(path)) return new InterceptingCall(paced(callOptions));
    const call = new RepeatingCall({
      options: callOptions,
      nextCall: paced,
      schedule,
      decideWaitMs(attempt, status, initial) {
        const nowMs = clock.epochMs();
        const requested = readRequestedWait(status, initial, nowMs);
        if (requested.ms === undefined || !requested.repeat) return undefined;
        // Waiting until the deadline itself would be useless.
        const waitMs = caller?.decideWait(attempt, requested.ms, findDeadlineMs(callOptions) - nowMs - 1);
        if (waitMs !== undefined) onWait?.({ path, attempt, waitMs, code: status.code });
        return waitMs;
      },
    });
    return new InterceptingCall(call);
  };
}
