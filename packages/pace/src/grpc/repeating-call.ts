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
  /** How long to wait for another attempt after this status; undefined if it is final. */
  readonly decideWaitMs: (attempt: number, status: StatusObject, initial: Metadata | undefined) => number | undefined;
  readonly schedule: (waitMs: number, wake: () => void) => () => void;
}

/**
 * A call with one request message that is made again as long as it is refused. The request is stored and sent again;
 * incoming events are held back until they are the answer: a message, or the final status. After the first message
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
  /** The status that refused the previous attempt. */
  #refusal: { readonly status: StatusObject; readonly initial: Metadata | undefined } | undefined;
  /** Cancels the wait, while there is one. */
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
    if (this.#endWait === undefined) this.#sendStored();
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
        // A call whose answer has no message reports null before its status.
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
        // After a refusal the caller gets that refusal, not the error that no turn came for another attempt.
        if (this.#refusal !== undefined && (status as LocalStatus).cause instanceof PaceError) {
          this.#finish(this.#refusal.status, this.#refusal.initial);
          return;
        }
        let waitMs: number | undefined;
        try {
          waitMs = this.#options.decideWaitMs(this.#attempt, status, initial);
        } catch (error) {
          // The app's own callback failed: the call must still end.
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

  #sendStored(): void {
    if (this.#sent === undefined) return;
    const { context, message } = this.#sent;
    // The callback for a sent message is called once.
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
    this.#sendStored();
    if (this.#readWanted) this.#call.startRead();
    if (this.#halfClosed) this.#call.halfClose();
  }
}
