import { randomBytes } from "node:crypto";
import { SluiceError } from "sluice";
import { type UsageEvent, usageEventBytes, usualEventBytes } from "./usage-event.ts";

export interface UsageTailOptions {
  /** Calls with every event from now on; returns what ends that. Events are made only while there is a watcher or a sink. */
  readonly watch: (onEvent: (event: UsageEvent) => void) => () => void;
  /** The most events that are kept, and in KiB the memory that they may take together. */
  readonly maxEvents?: number | undefined;
  /** The most events in one answer. */
  readonly maxAnswered?: number | undefined;
  /** The most requests that wait at a time. */
  readonly maxWaiting?: number | undefined;
  /** How long events are kept after the last request. */
  readonly keepMs?: number | undefined;
}

export interface TailRequest {
  /** `next` of the last answer. Undefined: from now on. */
  readonly after?: string | undefined;
  /** How long to wait for an event. */
  readonly waitMs: number;
  /** Called in the way of decisions: must be quick, and not throw. */
  readonly isShown: (event: UsageEvent) => boolean;
}

export interface TailAnswer {
  readonly events: readonly UsageEvent[];
  readonly next: string;
  /** Events that were discarded before they were read, shown or not. */
  readonly missed: number;
  /** Whether `after` was of another ring, so that it is not known what was missed. */
  readonly restarted: boolean;
}

/** What a cursor looks like: the ring, and how many of its events came before. */
export const cursorPattern: RegExp = /^([0-9a-f]{12})-(\d{1,15})$/;

/**
 * The latest usage events of this process, for watchers. Without a watcher nothing is kept:
 *
 *     idle ──read──► watched, events are counted and kept ──no request for `keepMs`──► idle
 */
export class UsageTail {
  readonly #options: UsageTailOptions;
  readonly #maxWaiting: number;
  readonly #waiting = new Set<Waiting>();
  #ring: Ring | undefined;
  #unwatch: (() => void) | undefined;
  #idle: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: UsageTailOptions) {
    this.#options = options;
    this.#maxWaiting = options.maxWaiting ?? 32;
  }

  /** Whether events are kept. */
  get isWatched(): boolean {
    return this.#ring !== undefined;
  }

  /** Throws `overloaded` if too many requests wait, and `not_ready` if the server is stopping. */
  async read({ after, waitMs, isShown }: TailRequest): Promise<TailAnswer> {
    if (this.#closed) throw new SluiceError("not_ready", "this server is stopping; ask again in a moment");
    if (waitMs > 0 && this.#waiting.size >= this.#maxWaiting)
      throw new SluiceError(
        "overloaded",
        `${this.#maxWaiting} requests wait for usage events here, which is the most; end another one, or try again later`,
      );
    const ring = this.#open();
    const found = ring.find(after);
    const restarted = found === undefined;
    let position = found ?? ring.end;
    try {
      if (waitMs > 0 && !restarted && !ring.hasNews(position, isShown))
        position = await this.#wait(ring, waitMs, isShown);
      return { ...ring.read(position, isShown), restarted };
    } finally {
      this.#keepForNow();
    }
  }

  /** Answers requests that wait, and refuses later ones. */
  close(): void {
    this.#closed = true;
    for (const waiting of this.#waiting) waiting.wake(undefined);
    this.#stop();
  }

  #open(): Ring {
    clearTimeout(this.#idle);
    if (this.#ring === undefined) {
      const { maxEvents = 5_000, maxAnswered = 1_000 } = this.#options;
      const ring = new Ring(maxEvents, maxAnswered);
      this.#ring = ring;
      this.#unwatch = this.#options.watch((event) => {
        const at = ring.end;
        ring.add(event);
        for (const waiting of this.#waiting) if (waiting.isShown(event)) waiting.wake(at);
      });
    }
    return this.#ring;
  }

  /** Resolves with where to read on: every event before that was seen, and is not shown, even if it is no longer kept. */
  #wait(ring: Ring, waitMs: number, isShown: TailRequest["isShown"]): Promise<number> {
    return new Promise((resolve) => {
      const wake = (at: number = ring.end): void => {
        clearTimeout(timer);
        this.#waiting.delete(waiting);
        resolve(at);
      };
      const waiting: Waiting = { isShown, wake };
      const timer = setTimeout(wake, waitMs).unref();
      this.#waiting.add(waiting);
    });
  }

  #keepForNow(): void {
    clearTimeout(this.#idle);
    if (this.#waiting.size === 0 && !this.#closed)
      this.#idle = setTimeout(() => this.#stop(), this.#options.keepMs ?? 30_000).unref();
  }

  #stop(): void {
    clearTimeout(this.#idle);
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#ring = undefined;
  }
}

interface Waiting {
  readonly isShown: TailRequest["isShown"];
  /** With the number of the first event for it; undefined if there is none. */
  readonly wake: (at: number | undefined) => void;
}

/** The latest events, by their number since it was made. */
class Ring {
  readonly #name = randomBytes(6).toString("hex");
  readonly #events: (UsageEvent | undefined)[] = [];
  readonly #maxEvents: number;
  readonly #maxAnswered: number;
  #oldest = 0;
  #end = 0;
  #bytes = 0;

  constructor(maxEvents: number, maxAnswered: number) {
    this.#maxEvents = maxEvents;
    this.#maxAnswered = maxAnswered;
  }

  /** The number of the next event. */
  get end(): number {
    return this.#end;
  }

  add(event: UsageEvent): void {
    this.#bytes += usageEventBytes(event);
    const maxBytes = this.#maxEvents * usualEventBytes;
    // The newest is kept, however large.
    while (this.#end - this.#oldest >= this.#maxEvents || (this.#bytes > maxBytes && this.#oldest < this.#end))
      this.#dropOldest();
    this.#events[this.#end % this.#maxEvents] = event;
    this.#end += 1;
  }

  #dropOldest(): void {
    const place = this.#oldest % this.#maxEvents;
    const event = this.#events[place];
    if (event !== undefined) this.#bytes -= usageEventBytes(event);
    this.#events[place] = undefined;
    this.#oldest += 1;
  }

  /** The position of a cursor; undefined if it is none of this ring. */
  find(after: string | undefined): number | undefined {
    if (after === undefined) return this.#end;
    const [, name, digits] = cursorPattern.exec(after) ?? [];
    const position = Number(digits);
    return name === this.#name && position <= this.#end ? position : undefined;
  }

  hasNews(position: number, isShown: TailRequest["isShown"]): boolean {
    const { events, missed } = this.read(position, isShown, 1);
    return events.length > 0 || missed > 0;
  }

  read(
    position: number,
    isShown: TailRequest["isShown"],
    atMost: number = this.#maxAnswered,
  ): Omit<TailAnswer, "restarted"> {
    const events: UsageEvent[] = [];
    let at = Math.max(position, this.#oldest);
    for (; at < this.#end && events.length < atMost; at += 1) {
      const event = this.#events[at % this.#maxEvents]!;
      if (isShown(event)) events.push(event);
    }
    return { events, next: `${this.#name}-${at}`, missed: Math.max(0, this.#oldest - position) };
  }
}
