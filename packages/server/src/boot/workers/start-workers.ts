import cluster, { type Worker } from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { Settings } from "../../settings/settings.ts";
import type { Announcement, MessageToPrimary, MessageToWorker } from "./messages.ts";
import { createPageGatherer } from "./page-gatherer.ts";

export interface WorkersOptions {
  readonly settings: Settings;
  readonly count: number;
  readonly log: Logger;
  /** Hears once that all workers listen. */
  readonly announce: (announcement: Announcement) => void;
}

/** Several processes behind the same ports, of which a crashed one is replaced. */
export interface Workers {
  /** Resolves when all have ended: `stopped`, or with how the first one failed, or that none of them stays alive. */
  readonly ended: Promise<WorkersEnd>;
  reload(): void;
  /** Has them drain and end. Asked again, they end without draining; asked a third time, they are killed. */
  stop(signal: NodeJS.Signals): void;
}

export type WorkersEnd =
  | { readonly kind: "stopped" }
  /** The first worker did not come to listen, and has said why. */
  | { readonly kind: "failed at start" }
  | { readonly kind: "given up" };

type WorkerEnd =
  | { readonly kind: "ended"; readonly code: number; readonly signal: string | null }
  /** There was no process: too many of them, or the program is being replaced. */
  | { readonly kind: "not started"; readonly reason: string };

const whatThen: Readonly<Record<WorkerEnd["kind"], string>> = {
  ended: "a worker ended unexpectedly; another takes its place",
  "not started": "a worker cannot be started; it is tried again",
};

interface Slot {
  readonly number: number;
  worker: Worker | undefined;
  /** Whether it has said hello, and hears what it is told. */
  joined: boolean;
  listening: boolean;
  listeningSinceMs: number;
  /** Ends in a row that came too soon. */
  failures: number;
}

const firstDelayMs = 100;
const longestDelayMs = 30_000;
/** Who listened for so long was well. */
const wellAfterMs = 30_000;
const mostFailures = 5;
const pageWithinMs = 1_000;
/** Beyond what a worker takes by itself, which is 10 s for what is in flight. */
const closeWithinMs = 15_000;
/** How long a worker that is not to drain may take to end, also on a machine that is short of CPU. */
const endWithinMs = 15_000;

/** Starts the first worker alone, so that what is wrong is said once; then the others. */
export function startWorkers({ settings, count, log, announce }: WorkersOptions): Workers {
  cluster.setupPrimary({ serialization: "advanced" });
  const slots = Array.from({ length: count }, (_, index): Slot => {
    return { number: index + 1, worker: undefined, joined: false, listening: false, listeningSinceMs: 0, failures: 0 };
  });
  const [first, ...others] = slots as [Slot, ...Slot[]];
  const gatherer = createPageGatherer(pageWithinMs, send);
  let stopping: NodeJS.Signals | undefined;
  let timesStopped = 0;
  let greeting: Announcement | undefined;
  let announced = false;
  let end: (end: WorkersEnd) => void = () => {};
  const ended = new Promise<WorkersEnd>((resolve) => {
    end = resolve;
  });

  function send(worker: Worker, message: MessageToWorker): void {
    if (worker.isConnected()) worker.send(message, undefined, () => {});
  }

  function start(slot: Slot): void {
    if (stopping !== undefined) return;
    slot.joined = false;
    slot.listening = false;
    let worker: Worker;
    try {
      worker = cluster.fork();
    } catch (error) {
      gone(slot, { kind: "not started", reason: String(error) });
      return;
    }
    slot.worker = worker;
    const { pid } = worker.process;
    if (pid !== undefined) log.debug({ worker: slot.number, pid }, "a worker is started");
    worker.on("message", (message: MessageToPrimary) => hear(slot, worker, message));
    worker.on("error", ({ message: reason }) => {
      if (pid !== undefined) log.debug({ worker: slot.number, reason }, "a worker cannot be told something");
      // What never was a process does not exit.
      else if (slot.worker === worker) gone(slot, { kind: "not started", reason });
    });
    worker.once("exit", (code, signal) => gone(slot, { kind: "ended", code, signal }));
  }

  function hear(slot: Slot, worker: Worker, message: MessageToPrimary): void {
    switch (message.kind) {
      case "hello":
        slot.joined = true;
        send(worker, { kind: "begin", number: slot.number });
        // One that was still being loaded could not hear it before.
        if (stopping !== undefined) send(worker, { kind: "stop", signal: stopping });
        break;
      case "listening":
        slot.listening = true;
        slot.listeningSinceMs = performance.now();
        greeting ??= message.announcement;
        if (slot === first && !announced) for (const other of others) if (other.worker === undefined) start(other);
        announceOnce();
        break;
      case "page":
        gatherer.hear(message.id, message.page);
        break;
      case "pages wanted": {
        const asked = slots.flatMap((one) => (one !== slot && one.listening && one.worker ? [one.worker] : []));
        void gatherer
          .gather(asked, message.topic)
          .then((pages) => send(worker, { kind: "pages", id: message.id, pages }));
        break;
      }
    }
  }

  /** When all listen; or, should one of them have trouble, when the rest do. */
  function announceOnce(): void {
    if (announced || greeting === undefined || !slots.every(({ listening, failures }) => listening || failures > 0))
      return;
    announced = true;
    announce(greeting);
  }

  function gone(slot: Slot, { kind, ...how }: WorkerEnd): void {
    const { listening, listeningSinceMs, number } = slot;
    slot.worker = undefined;
    slot.listening = false;
    if (stopping !== undefined) {
      log.debug({ worker: number, ...how }, "a worker ended");
      if (slots.every(({ worker }) => worker === undefined)) end({ kind: "stopped" });
      return;
    }
    if (slot === first && greeting === undefined) {
      stopping = "SIGTERM";
      if (kind === "not started") log.error({ worker: number, ...how }, "a worker cannot be started");
      end({ kind: "failed at start" });
      return;
    }
    const wasWell = listening && performance.now() - listeningSinceMs >= wellAfterMs;
    slot.failures = wasWell ? 1 : slot.failures + 1;
    const delayMs = Math.min(firstDelayMs * 2 ** (slot.failures - 1), longestDelayMs);
    log.error({ worker: number, ...how, delayMs }, whatThen[kind]);
    announceOnce();
    if (slots.every(({ worker, failures }) => worker === undefined && failures >= mostFailures)) {
      stopping = "SIGTERM";
      end({ kind: "given up" });
      return;
    }
    setTimeout(start, delayMs, slot);
  }

  function stop(signal: NodeJS.Signals): void {
    stopping = signal;
    timesStopped += 1;
    if (slots.every(({ worker }) => worker === undefined)) end({ kind: "stopped" });
    for (const { worker, joined } of slots) if (worker !== undefined && joined) send(worker, { kind: "stop", signal });
    void killAfter(timesStopped === 1 ? settings.drainMs + closeWithinMs : timesStopped === 2 ? endWithinMs : 0);
  }

  /** One that hangs does not keep the rest from ending. */
  async function killAfter(ms: number): Promise<void> {
    await sleep(ms, undefined, { ref: false });
    for (const { worker, number } of slots) {
      if (worker === undefined) continue;
      log.error({ worker: number }, "a worker did not end in time and is killed");
      worker.process.kill("SIGKILL");
    }
  }

  start(first);
  return {
    ended,
    reload(): void {
      for (const { worker } of slots) if (worker !== undefined) send(worker, { kind: "reload" });
    },
    stop,
  };
}
