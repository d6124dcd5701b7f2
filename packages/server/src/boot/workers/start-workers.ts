import cluster, { type Worker } from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import type { LogEvent } from "../../observe/telemetry/log-events.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { Settings } from "../../settings/settings.ts";
import type { Announcement, MessageToPrimary, MessageToWorker } from "./messages.ts";
import { createPageGatherer, type PageGatherer } from "./page-gatherer.ts";

export interface WorkersOptions {
  readonly settings: Settings;
  readonly count: number;
  readonly log: Logger;
  /** Called once, when all workers listen. */
  readonly announce: (announcement: Announcement) => void;
}

/** Several processes behind the same ports; one that crashes is replaced. */
export interface Workers {
  /** Resolves when all have ended: `stopped`, how the first one failed, or that none of them stays alive. */
  readonly ended: Promise<WorkersEnd>;
  reload(): void;
  /** Asks them to drain and end. At a second call they end without draining; at a third they are killed. */
  stop(signal: NodeJS.Signals): void;
}

export type WorkersEnd =
  | { readonly kind: "stopped" }
  /** The first worker did not get as far as listening, and has said why. */
  | { readonly kind: "failed at start" }
  | { readonly kind: "given up" };

type WorkerEnd =
  | { readonly kind: "ended"; readonly code: number; readonly signal: string | null }
  /** No process could be created: there are too many, or the program is being replaced. */
  | { readonly kind: "not started"; readonly reason: string };

const endEvents: Readonly<Record<WorkerEnd["kind"], LogEvent>> = {
  ended: "worker.replaced",
  "not started": "worker.start_retried",
};

/** A place for one worker, which has its number. */
interface Slot {
  readonly number: number;
  worker: Worker | undefined;
  /** Whether it has said hello, and receives messages. */
  joined: boolean;
  listening: boolean;
  listeningSinceMs: number;
  /** How often in a row it ended too soon. */
  failures: number;
}

const firstDelayMs = 100;
const longestDelayMs = 30_000;
/** A worker that listened for this long was healthy. */
const wellAfterMs = 30_000;
const mostFailures = 5;
const pageWithinMs = 1_000;
/** Beyond the worker's own limit, which is 10 s for what is in flight. */
const closeWithinMs = 15_000;
/** How long a worker that is not to drain may take to end, even on a machine that is short of CPU. */
const endWithinMs = 15_000;

/** Starts the first worker alone, so that an error is reported once; then the others. */
export function startWorkers(options: WorkersOptions): Workers {
  cluster.setupPrimary({ serialization: "advanced" });
  return new WorkerSlots(options);
}

/**
 * The workers by their slots. A slot cycles until all are asked to stop:
 *
 *     starting ──hello──► joined ──listening──► listening
 *        ▲                   │                      │
 *        └──after a while────┴───ended, or never started (ever longer; given up when all keep failing)
 */
class WorkerSlots implements Workers {
  readonly ended: Promise<WorkersEnd>;
  readonly #end: (end: WorkersEnd) => void;
  readonly #options: WorkersOptions;
  readonly #slots: readonly Slot[];
  readonly #first: Slot;
  readonly #gatherer: PageGatherer;
  /** The signal that all were asked to stop with. */
  #stopping: NodeJS.Signals | undefined;
  #timesStopped = 0;
  /** The announcement of the first one that listened. */
  #greeting: Announcement | undefined;
  #announced = false;

  constructor(options: WorkersOptions) {
    this.#options = options;
    this.#slots = Array.from({ length: options.count }, (_, index) => emptySlot(index + 1));
    this.#first = this.#slots[0]!;
    this.#gatherer = createPageGatherer(pageWithinMs, send);
    let end: (end: WorkersEnd) => void = () => {};
    this.ended = new Promise<WorkersEnd>((resolve) => {
      end = resolve;
    });
    this.#end = end;
    this.#start(this.#first);
  }

  reload(): void {
    for (const { worker } of this.#slots) if (worker !== undefined) send(worker, { kind: "reload" });
  }

  stop(signal: NodeJS.Signals): void {
    this.#stopping = signal;
    this.#timesStopped += 1;
    if (this.#slots.every(({ worker }) => worker === undefined)) this.#end({ kind: "stopped" });
    for (const { worker, joined } of this.#slots)
      if (worker !== undefined && joined) send(worker, { kind: "stop", signal });
    void this.#killAfter(this.#patienceMs());
  }

  /** How long workers may take to end, by how often they were asked to. */
  #patienceMs(): number {
    if (this.#timesStopped === 1) return this.#options.settings.drainMs + closeWithinMs;
    return this.#timesStopped === 2 ? endWithinMs : 0;
  }

  /** One that hangs does not keep the rest from ending. */
  async #killAfter(ms: number): Promise<void> {
    await sleep(ms, undefined, { ref: false });
    for (const { worker, number } of this.#slots) {
      if (worker === undefined) continue;
      this.#options.log.error("worker.killed", { worker: number });
      worker.process.kill("SIGKILL");
    }
  }

  #start(slot: Slot): void {
    if (this.#stopping !== undefined) return;
    const { log } = this.#options;
    slot.joined = false;
    slot.listening = false;
    let worker: Worker;
    try {
      worker = cluster.fork();
    } catch (error) {
      this.#gone(slot, { kind: "not started", reason: String(error) });
      return;
    }
    slot.worker = worker;
    const { pid } = worker.process;
    if (pid !== undefined) log.debug("worker.started", { worker: slot.number, pid });
    worker.on("message", (message: MessageToPrimary) => this.#hear(slot, worker, message));
    worker.on("error", ({ message: reason }) => {
      if (pid !== undefined) log.debug("worker.message_failed", { worker: slot.number, reason });
      // A process that never existed does not exit.
      else if (slot.worker === worker) this.#gone(slot, { kind: "not started", reason });
    });
    worker.once("exit", (code, signal) => this.#gone(slot, { kind: "ended", code, signal }));
  }

  #hear(slot: Slot, worker: Worker, message: MessageToPrimary): void {
    switch (message.kind) {
      case "hello":
        slot.joined = true;
        send(worker, { kind: "begin", number: slot.number });
        // One that was still being loaded could not receive it before.
        if (this.#stopping !== undefined) send(worker, { kind: "stop", signal: this.#stopping });
        break;
      case "listening":
        this.#hearListening(slot, message.announcement);
        break;
      case "page":
        this.#gatherer.hear(message.id, message.page);
        break;
      case "pages wanted": {
        const asked = this.#slots.flatMap((one) => (one !== slot && one.listening && one.worker ? [one.worker] : []));
        void this.#gatherer
          .gather(asked, message.topic, message.question)
          .then((pages) => send(worker, { kind: "pages", id: message.id, pages }));
        break;
      }
    }
  }

  #hearListening(slot: Slot, announcement: Announcement): void {
    slot.listening = true;
    slot.listeningSinceMs = performance.now();
    this.#greeting ??= announcement;
    if (slot === this.#first && !this.#announced)
      for (const other of this.#slots) if (other !== slot && other.worker === undefined) this.#start(other);
    this.#announceOnce();
  }

  /** When all listen, or when the rest do if one of them has trouble. */
  #announceOnce(): void {
    if (this.#announced || this.#greeting === undefined) return;
    if (!this.#slots.every(({ listening, failures }) => listening || failures > 0)) return;
    this.#announced = true;
    this.#options.announce(this.#greeting);
  }

  #gone(slot: Slot, how: WorkerEnd): void {
    const wasWell = slot.listening && performance.now() - slot.listeningSinceMs >= wellAfterMs;
    slot.worker = undefined;
    slot.listening = false;
    if (this.#stopping !== undefined) this.#goneWhileStopping(slot, how);
    else if (slot === this.#first && this.#greeting === undefined) this.#failAtStart(slot, how);
    else this.#startAgain(slot, how, wasWell);
  }

  #goneWhileStopping({ number }: Slot, { kind: _, ...how }: WorkerEnd): void {
    this.#options.log.debug("worker.ended", { worker: number, ...how });
    if (this.#slots.every(({ worker }) => worker === undefined)) this.#end({ kind: "stopped" });
  }

  #failAtStart({ number }: Slot, { kind, ...how }: WorkerEnd): void {
    this.#stopping = "SIGTERM";
    if (kind === "not started") this.#options.log.error("worker.start_failed", { worker: number, ...how });
    this.#end({ kind: "failed at start" });
  }

  #startAgain(slot: Slot, { kind, ...how }: WorkerEnd, wasWell: boolean): void {
    slot.failures = wasWell ? 1 : slot.failures + 1;
    const delayMs = Math.min(firstDelayMs * 2 ** (slot.failures - 1), longestDelayMs);
    this.#options.log.error(endEvents[kind], { worker: slot.number, ...how, delayMs });
    this.#announceOnce();
    if (this.#slots.every(({ worker, failures }) => worker === undefined && failures >= mostFailures)) {
      this.#stopping = "SIGTERM";
      this.#end({ kind: "given up" });
      return;
    }
    setTimeout(() => this.#start(slot), delayMs);
  }
}

function emptySlot(number: number): Slot {
  return { number, worker: undefined, joined: false, listening: false, listeningSinceMs: 0, failures: 0 };
}

function send(worker: Worker, message: MessageToWorker): void {
  if (worker.isConnected()) worker.send(message, undefined, () => {});
}
