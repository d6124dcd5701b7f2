import {
  type InterceptingListener,
  type InterceptorOptions,
  Metadata,
  type NextCall,
  type StatusObject,
  status as statusCodes,
} from "@grpc/grpc-js";
import type { Clock } from "sluice";
import type { Caller } from "../caller/callers.ts";
import { PaceError } from "../pacing/pace-error.ts";
import { readRateLimit } from "../reading/read-rate-limit.ts";
import type { Schedule } from "../schedule.ts";
import type { CallBelow, MessageContext } from "./call-below.ts";
import { findDeadlineMs } from "./find-deadline-ms.ts";
import { readRequestedWait } from "./read-requested-wait.ts";
import { whenParentCancels } from "./when-parent-cancels.ts";

export interface PacedCallOptions {
  readonly options: InterceptorOptions;
  readonly nextCall: NextCall;
  /** The caller whose pace it keeps to. Read once, when the call starts. */
  readonly findCaller: (metadata: Metadata, target: string) => Caller;
  readonly clock: Clock;
  readonly schedule: Schedule;
}

/** A status that did not come from the server: nothing was sent. */
export interface LocalStatus extends StatusObject {
  /** Becomes the `cause` of the caller's error. */
  readonly cause?: unknown;
}

/**
 * A call that starts when its turn comes. Messages sent before that are held back, in order. Cancelling ends it at once,
 * its deadline is kept, and it learns the limits in its answer. It counts as running until its answer begins.
 */
export class PacedCall implements CallBelow {
  readonly #options: PacedCallOptions;
  readonly #target: string;
  /** Undefined while waiting: a call that is created but not started could end without notifying any listener. */
  #below: CallBelow | undefined;
  #listener: Partial<InterceptingListener> | undefined;
  #state: "waiting" | "running" | "over" = "waiting";
  #held: ((below: CallBelow) => void)[] = [];
  /** Cancels the wait for a turn, while there is one, and leaves nothing behind. */
  #endWait: (() => void) | undefined;

  constructor(options: PacedCallOptions) {
    this.#options = options;
    // Throws if the channel is closed, as without pacing; and only a call knows its target.
    this.#below = options.nextCall(options.options);
    this.#target = this.#below.getPeer();
  }

  start(metadata: Metadata, listener?: Partial<InterceptingListener>): void {
    this.#listener = listener;
    let caller: Caller;
    try {
      caller = this.#options.findCaller(metadata, this.#target);
    } catch (error) {
      // The app's own callback failed.
      this.#dropBelow();
      throw error;
    }
    let sent = metadata;
    const giveUp = caller.enter(
      () => this.#begin(caller, sent),
      (reason) => this.#turnAway(reason),
    );
    if (this.#state !== "waiting") return;
    // Metadata may be changed by then, for another call.
    sent = metadata.clone();
    this.#wait(giveUp);
  }

  sendMessageWithContext(context: MessageContext, message: unknown): void {
    this.#pass((below) => below.sendMessageWithContext(context, message));
  }

  sendMessage(message: unknown): void {
    this.sendMessageWithContext({}, message);
  }

  startRead(): void {
    this.#pass((below) => below.startRead());
  }

  halfClose(): void {
    this.#pass((below) => below.halfClose());
  }

  cancelWithStatus(code: statusCodes, details: string): void {
    if (this.#endWait === undefined) this.#below?.cancelWithStatus(code, details);
    else this.#end({ code, details, metadata: new Metadata() });
  }

  getPeer(): string {
    return this.#below?.getPeer() ?? this.#target;
  }

  getAuthContext(): ReturnType<CallBelow["getAuthContext"]> {
    return this.#below?.getAuthContext?.() ?? null;
  }

  #pass(operation: (below: CallBelow) => void): void {
    if (this.#state === "waiting") this.#held.push(operation);
    else if (this.#below !== undefined) operation(this.#below);
  }

  #wait(giveUp: () => void): void {
    const { options, clock, schedule } = this.#options;
    this.#dropBelow();
    const leftMs = findDeadlineMs(options) - clock.epochMs();
    const exceed = (): void => this.#end(localStatus(statusCodes.DEADLINE_EXCEEDED, exceeded));
    // grpc-js treats a deadline that is not a number as passed.
    const callOff = leftMs === Number.POSITIVE_INFINITY ? undefined : schedule(Math.max(0, leftMs) || 0, exceed);
    let forgetParent: (() => void) | undefined;
    this.#endWait = () => {
      this.#endWait = undefined;
      giveUp();
      callOff?.();
      forgetParent?.();
    };
    const cancel = (): void => this.cancelWithStatus(statusCodes.CANCELLED, "Cancelled by parent call");
    forgetParent = whenParentCancels(options, cancel);
    if (this.#state !== "waiting") forgetParent();
  }

  /** Its turn has come. Must not throw: others wait behind it. */
  #begin(caller: Caller, metadata: Metadata): void {
    const { nextCall, options } = this.#options;
    this.#endWait?.();
    let answered = false;
    const end = (): void => {
      if (!answered) caller.end();
      answered = true;
    };
    try {
      this.#below ??= nextCall(options);
    } catch (error) {
      // The channel was closed meanwhile.
      end();
      this.#end(localStatus(statusCodes.UNAVAILABLE, errorMessage(error)));
      return;
    }
    try {
      this.#below.start(metadata, this.#listen(caller, end));
      // A listener that is answered at once may send more; those messages come after the held ones.
      for (const operation of this.#held) operation(this.#below);
      this.#state = "running";
      this.#held = [];
    } catch (error) {
      end();
      this.#dropBelow();
      this.#end(localStatus(statusCodes.INTERNAL, errorMessage(error), error));
    }
  }

  #listen(caller: Caller, end: () => void): InterceptingListener {
    const { clock } = this.#options;
    let initial: Metadata | undefined;
    return {
      onReceiveMetadata: (metadata) => {
        // Only limits: the status decides whether this is a refusal.
        caller.learn(readRateLimit(metadata.getMap(), { nowMs: clock.epochMs() }), undefined, initial === undefined);
        end();
        initial = metadata;
        this.#listenerBelow?.onReceiveMetadata?.(metadata);
      },
      onReceiveMessage: (message) => {
        this.#listenerBelow?.onReceiveMessage?.(message);
      },
      onReceiveStatus: (status) => {
        const nowMs = clock.epochMs();
        const { ms } = readRequestedWait(status, initial, nowMs);
        caller.learn(readRateLimit(status.metadata?.getMap() ?? {}, { nowMs }), ms, initial === undefined);
        end();
        this.#listenerBelow?.onReceiveStatus?.(status);
      },
    };
  }

  /** The listener for events of the wrapped call. Undefined once this call has ended. */
  get #listenerBelow(): Partial<InterceptingListener> | undefined {
    return this.#state === "over" ? undefined : this.#listener;
  }

  #turnAway(reason: unknown): void {
    this.#dropBelow();
    if (reason instanceof PaceError) this.#end(localStatus(statusCodes.RESOURCE_EXHAUSTED, reason.message, reason));
    else this.#end(localStatus(statusCodes.INTERNAL, errorMessage(reason), reason));
  }

  /** Even a call that is not started has a timer for its deadline. */
  #dropBelow(): void {
    this.#below?.cancelWithStatus(statusCodes.CANCELLED, "the call was not made");
    this.#below = undefined;
  }

  #end(status: LocalStatus): void {
    this.#endWait?.();
    this.#state = "over";
    this.#held = [];
    // As grpc-js does: an error that a listener throws must not reach other code.
    process.nextTick(() => {
      if (!this.#options.options.method_definition.responseStream) this.#listener?.onReceiveMessage?.(null);
      this.#listener?.onReceiveStatus?.(status);
    });
  }
}

const exceeded = "Deadline exceeded while waiting for a turn; the call was not sent";

function localStatus(code: statusCodes, details: string, cause?: unknown): LocalStatus {
  return { code, details, metadata: new Metadata(), ...(cause !== undefined && { cause }) };
}

function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
