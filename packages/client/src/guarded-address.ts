import type { Peer } from "sluice/internal";
import { CircuitBreaker, type CircuitState } from "sluice/store";
import type { Exchange, ExchangeEvents, QuestionKind, Sending, SentQuestion } from "./exchange.ts";
import type { RemoteTime } from "./remote-time.ts";

/**
 * The state of an address: not used yet; connecting; ready; put aside, because it was unreachable or did not answer,
 * and retried in the background.
 */
export type AddressState = "idle" | "connecting" | "ready" | "aside";

export interface AddressStats {
  readonly address: string;
  readonly state: AddressState;
  readonly breaker: CircuitState;
  /** Questions that it was sent and has not answered. */
  readonly unanswered: number;
  readonly sent: number;
  readonly batches: number;
  /** Batches that were lost, or not answered in time. */
  readonly failedBatches: number;
}

export interface GuardedAddressOptions {
  readonly name: string;
  readonly createExchange: (events: ExchangeEvents) => Exchange;
  readonly time: RemoteTime;
  readonly random: () => number;
  /** How long a server may take to accept a connection. */
  readonly openWithinMs: number;
  /** It is ready. */
  readonly onReady: () => void;
  /** It is unreachable, or stopped answering: waiting for it is useless. */
  readonly onAside: () => void;
  readonly onChange: (address: string, state: AddressState, why: string) => void;
}

const firstPauseMs = 50;
const longestPauseMs = 5_000;
/** A connection that ends before this was a short one; at most this many in a row are permitted. */
const shortStayMs = 100;
const mostShortStays = 3;
/** How often a breaker that opened is probed. */
const probeEveryMs = 1_000;

/**
 * One server. It is connected on first use, and again when its connection has ended. If it is unreachable, or leaves
 * batches unanswered so that its breaker opens, it is put aside: for 50 ms at first and up to 5 s later, and retried in
 * the background. Questions wait only for an address without failures.
 */
export class GuardedAddress implements Peer {
  readonly name: string;
  readonly #options: GuardedAddressOptions;
  readonly #exchange: Exchange;
  readonly #breaker: CircuitBreaker;
  #state: AddressState = "idle";
  #failures = 0;
  #callOff: (() => void) | undefined;
  #closed = false;
  /** When it was last ready. */
  #readyMs = Number.NEGATIVE_INFINITY;
  #shortStays = 0;
  #sent = 0;
  #batches = 0;
  #failedBatches = 0;
  /** Questions and batches in flight: no kind takes the room of another. */
  unanswered = 0;
  readonly inFlight: Record<QuestionKind, number> = { check: 0, charge: 0, give: 0, reset: 0, lease: 0 };

  constructor(options: GuardedAddressOptions) {
    this.#options = options;
    this.name = options.name;
    this.#exchange = options.createExchange({ onEnd: (why) => this.#end(why) });
    this.#breaker = new CircuitBreaker({
      probeEveryMs,
      onChange: (state, why) => {
        if (state === "open") this.#breakOff(why);
      },
    });
  }

  get stats(): AddressStats {
    return {
      address: this.name,
      state: this.#state,
      breaker: this.#breaker.state,
      unanswered: this.unanswered,
      sent: this.#sent,
      batches: this.#batches,
      failedBatches: this.#failedBatches,
    };
  }

  get ready(): boolean {
    return this.#state === "ready";
  }

  hasRoom(kind: QuestionKind): boolean {
    return this.#state === "ready" && this.inFlight[kind] < this.#exchange.maxInFlight;
  }

  /** Batches settle under these rules. */
  get generation(): number {
    return this.#breaker.generation;
  }

  /** Prepares it for use. False if it is put aside, so that there is nothing to wait for. */
  approach(): boolean {
    if (this.#state === "idle") this.#open("call");
    return this.#state !== "aside";
  }

  send(kind: QuestionKind, questions: readonly SentQuestion[]): Sending {
    this.#sent += questions.length;
    this.#batches += 1;
    return this.#exchange.send(kind, questions);
  }

  /** Whether it has answered a batch recently. */
  get isHeard(): boolean {
    return this.#breaker.isHeard(this.#options.time.clock.nowMs());
  }

  succeed(generation: number): void {
    this.#breaker.succeed(this.#options.time.clock.nowMs(), generation);
  }

  fail(generation: number): void {
    this.#failedBatches += 1;
    this.#breaker.fail(this.#options.time.clock.nowMs(), generation);
  }

  close(): void {
    this.#closed = true;
    this.#callOff?.();
    this.#callOff = undefined;
    this.#exchange.close();
    this.#state = "idle";
  }

  #open(admission: "call" | "probe"): void {
    const { generation } = this.#breaker;
    if (this.#state === "idle") this.#become("connecting", "it is needed");
    this.#exchange.open(this.#options.openWithinMs).then(
      () => {
        if (this.#closed) return;
        if (admission === "probe") this.succeed(generation);
        // The breaker may have opened meanwhile, because of earlier questions.
        if (this.#breaker.state !== "closed") this.#putAside("it did not answer what it was sent before");
        else {
          this.#failures = 0;
          this.#readyMs = this.#options.time.clock.nowMs();
          this.#become("ready", "it answers");
          this.#options.onReady();
        }
      },
      (error: unknown) => {
        if (this.#closed) return;
        if (admission === "probe") this.#breaker.fail(this.#options.time.clock.nowMs(), generation);
        // The breaker has handled it, if it was notified.
        if (this.#callOff === undefined) this.#putAside(error instanceof Error ? error.message : String(error));
      },
    );
  }

  /** The server left, or the connection is gone. That is not held against the next one, unless it keeps happening. */
  #end(why: string): void {
    if (this.#closed || this.#state !== "ready") return;
    const stayed = this.#options.time.clock.nowMs() - this.#readyMs >= shortStayMs;
    this.#shortStays = stayed ? 0 : this.#shortStays + 1;
    if (this.#shortStays > mostShortStays) {
      this.#putAside(why);
      return;
    }
    this.#become("idle", why);
    this.#open("call");
  }

  /** A connection that stopped answering may be half open, which only a new one reveals. */
  #breakOff(why: string): void {
    if (this.#closed) return;
    this.#exchange.close();
    this.#putAside(why);
  }

  #putAside(why: string): void {
    this.#failures += 1;
    this.#become("aside", why);
    const { time, random } = this.#options;
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.#failures - 1, 10));
    // Clients that lost the same server must not all return at the same moment.
    const waitMs = Math.max(this.#breaker.state === "closed" ? 0 : probeEveryMs + 1, pauseMs * (0.5 + random() / 2));
    this.#callOff?.();
    this.#callOff = time.scheduleIdly(waitMs, () => this.#retry());
    this.#options.onAside();
  }

  #retry(): void {
    this.#callOff = undefined;
    if (this.#closed || this.#state !== "aside") return;
    const admission = this.#breaker.admit(this.#options.time.clock.nowMs());
    if (admission === "refuse") this.#callOff = this.#options.time.scheduleIdly(probeEveryMs, () => this.#retry());
    else this.#open(admission);
  }

  #become(state: AddressState, why: string): void {
    const changed = this.#state !== state;
    this.#state = state;
    if (changed) this.#options.onChange(this.name, state, why);
  }
}
