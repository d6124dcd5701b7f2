import {
  type InterceptingListener,
  type InterceptorOptions,
  Metadata,
  type NextCall,
  type StatusObject,
  status as statusCodes,
} from "@grpc/grpc-js";
import { PaceError } from "../pacing/pace-error.ts";
import type { CallBelow, MessageContext } from "./call-below.ts";
import type { LocalStatus } from "./paced-call.ts";
import { whenParentCancels } from "./when-parent-cancels.ts";

export interface RepeatingCallOptions {
  readonly options: InterceptorOptions;
  readonly nextCall: NextCall;
  /** How long to wait for another attempt after this one ended so; undefined where it is the last. */
  readonly decideWaitMs: (attempt: number, status: StatusObject, initial: Metadata | undefined) => number | undefined;
  readonly schedule: (waitMs: number, wake: () => void) => () => void;
}

/**
 * A call with one request message that is made again as long as it is refused. What was sent is kept, and sent again;
 * what is received is held back until it is the answer: a message, or the last status. From the first message on
 * everything passes straight through.
 */
export class RepeatingCall implements CallBelow {
  readonly #options: RepeatingCallOptions;
  #attempt = 1;
  #call: CallBelow;
  #metadata = new Metadata();
  #listener: Partial<InterceptingListener> | undefined;
  #sent: { readonly context: MessageContext; readonly message: unknown } | undefined;
  #halfClosed = false;
  #readWanted = false;
  /** What the attempt before this one was refused with. */
  #refusal: { readonly status: StatusObject; readonly initial: Metadata | undefined } | undefined;
  /** Calls the wait off, while there is one. */
  #endWait: (() => void) | undefined;

  constructor(options: RepeatingCallOptions) {
    this.#options = options;
    this.#call = options.nextCall(options.options);
  }

  start(metadata: Metadata, listener?: Partial<InterceptingListener>): void {
    this.#metadata = metadata.clone();
    this.#listener = listener;
    this.#call.start(metadata, this.#listen());
  }

  sendMessageWithContext(context: MessageContext, message: unknown): void {
    this.#sent = { context, message };
    if (this.#endWait === undefined) this.#sendKept();
  }

  sendMessage(message: unknown): void {
    this.sendMessageWithContext({}, message);
  }

  startRead(): void {
    this.#readWanted = true;
    if (this.#endWait === undefined) this.#call.startRead();
  }

  halfClose(): void {
    this.#halfClosed = true;
    if (this.#endWait === undefined) this.#call.halfClose();
  }

  cancelWithStatus(code: statusCodes, details: string): void {
    if (this.#endWait === undefined) {
      this.#call.cancelWithStatus(code, details);
      return;
    }
    this.#endWait();
    this.#finish({ code, details, metadata: new Metadata() }, undefined);
  }

  getPeer(): string {
    return this.#call.getPeer();
  }

  getAuthContext(): ReturnType<CallBelow["getAuthContext"]> {
    return this.#call.getAuthContext?.() ?? null;
  }

  #listen(): InterceptingListener {
    const { responseStream } = this.#options.options.method_definition;
    let initial: Metadata | undefined;
    let committed = false;
    return {
      onReceiveMetadata: (metadata) => {
        initial = metadata;
      },
      onReceiveMessage: (message) => {
        // A call without a message in its answer tells so by null, before its status.
        if (!responseStream && message === null) return;
        if (!committed && initial !== undefined) this.#listener?.onReceiveMetadata?.(initial);
        committed = true;
        this.#readWanted = false;
        this.#listener?.onReceiveMessage?.(message);
      },
      onReceiveStatus: (status) => {
        if (committed) {
          this.#listener?.onReceiveStatus?.(status);
          return;
        }
        // After an answer the caller gets that answer, and not that there is no turn for another attempt.
        if (this.#refusal !== undefined && (status as LocalStatus).cause instanceof PaceError) {
          this.#finish(this.#refusal.status, this.#refusal.initial);
          return;
        }
        let waitMs: number | undefined;
        try {
          waitMs = this.#options.decideWaitMs(this.#attempt, status, initial);
        } catch (error) {
          // A callback of the caller's own failed: its call ends all the same.
          this.#finish(status, initial);
          throw error;
        }
        if (waitMs === undefined) this.#finish(status, initial);
        else {
          this.#refusal = { status, initial };
          this.#waitAndRepeat(waitMs);
        }
      },
    };
  }

  #finish(status: StatusObject, initial: Metadata | undefined): void {
    if (initial !== undefined) this.#listener?.onReceiveMetadata?.(initial);
    if (!this.#options.options.method_definition.responseStream) this.#listener?.onReceiveMessage?.(null);
    this.#listener?.onReceiveStatus?.(status);
  }

  #waitAndRepeat(waitMs: number): void {
    const cancel = (): void => this.cancelWithStatus(statusCodes.CANCELLED, "Cancelled by parent call");
    let forgetParent: (() => void) | undefined;
    const endWait = (): void => {
      this.#endWait = undefined;
      callOff();
      forgetParent?.();
    };
    const callOff = this.#options.schedule(waitMs, () => {
      endWait();
      this.#repeat();
    });
    this.#endWait = endWait;
    forgetParent = whenParentCancels(this.#options.options, cancel);
    if (this.#endWait === undefined) forgetParent();
  }

  #sendKept(): void {
    if (this.#sent === undefined) return;
    const { context, message } = this.#sent;
    // Whoever waits for the message to be sent is told once.
    this.#sent = { context: context.flags === undefined ? {} : { flags: context.flags }, message };
    this.#call.sendMessageWithContext(context, message);
  }

  #repeat(): void {
    const { nextCall, options } = this.#options;
    this.#attempt += 1;
    const metadata = this.#metadata.clone();
    metadata.set("grpc-previous-rpc-attempts", String(this.#attempt - 1));
    try {
      this.#call = nextCall(options);
    } catch (error) {
      // The channel was closed meanwhile.
      const details = error instanceof Error ? error.message : String(error);
      this.#finish({ code: statusCodes.UNAVAILABLE, details, metadata: new Metadata() }, undefined);
      return;
    }
    this.#call.start(metadata, this.#listen());
    this.#sendKept();
    if (this.#readWanted) this.#call.startRead();
    if (this.#halfClosed) this.#call.halfClose();
  }
}
