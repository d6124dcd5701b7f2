import cluster from "node:cluster";
import { EventEmitter } from "node:events";
import type { WorkerLink, WorkerTopic } from "../../observe/worker-link.ts";
import type { Signals } from "../signals.ts";
import type { Announcement, MessageToPrimary, MessageToWorker } from "./messages.ts";

/** A worker's link to the process that started it. */
export interface JoinedWorker extends WorkerLink {
  /** Signals from the first process. Those of the system do not count: a terminal sends them to both. */
  readonly signals: Signals;
  announce(announcement: Announcement): void;
  /** Disconnects from the first process. */
  leave(): void;
}

const pagesWithinMs = 2_000;

/** Resolves once the first process says to begin. If that is gone, it counts as a signal to stop. */
export function joinWorkers(): Promise<JoinedWorker> {
  const { signals, forward } = createForwardedSignals();
  const asked = new Map<number, (pages: readonly string[]) => void>();
  let lastId = 0;
  const answers = new Map<WorkerTopic, (question: string) => Promise<string>>();
  let begin: ((number: number) => void) | undefined;

  function send(message: MessageToPrimary): void {
    if (process.connected) process.send?.(message, undefined, undefined, () => {});
  }

  /** Empty if there is nothing to report yet, so that the first process does not wait. */
  async function render(topic: WorkerTopic, question: string): Promise<string> {
    return (await answers.get(topic)?.(question)) ?? "";
  }

  function hear(message: MessageToWorker): void {
    switch (message.kind) {
      case "begin":
        begin?.(message.number);
        break;
      case "stop":
        forward(message.signal);
        break;
      case "reload":
        forward("SIGHUP");
        break;
      case "page wanted":
        void render(message.topic, message.question).then((page) => send({ kind: "page", id: message.id, page }));
        break;
      case "pages":
        asked.get(message.id)?.(message.pages);
        break;
    }
  }

  const lost = (): void => forward("SIGTERM");
  process.on("message", hear);
  process.on("disconnect", lost);
  // Otherwise Node ends a worker at once when the first process is gone, with everything in flight.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;

  function askOthers(topic: WorkerTopic, question = ""): Promise<readonly string[]> {
    const id = ++lastId;
    return new Promise((resolve) => {
      const settle = (pages: readonly string[]): void => {
        clearTimeout(timer);
        asked.delete(id);
        resolve(pages);
      };
      const timer = setTimeout(settle, pagesWithinMs, []);
      asked.set(id, settle);
      send({ kind: "pages wanted", id, topic, question });
    });
  }

  return new Promise((resolve) => {
    begin = (number): void =>
      resolve({
        number,
        signals,
        askOthers,
        answer(topic, render): void {
          answers.set(topic, render);
        },
        announce: (announcement) => send({ kind: "listening", announcement }),
        leave(): void {
          process.off("disconnect", lost);
          process.off("message", hear);
          if (process.connected) process.disconnect();
        },
      });
    send({ kind: "hello" });
  });
}

/** Signals forwarded by the first process. One without a listener yet is kept for the first. */
function createForwardedSignals(): { readonly signals: Signals; forward(signal: NodeJS.Signals): void } {
  const emitter = new EventEmitter();
  const missed = new Set<NodeJS.Signals>();
  return {
    forward(signal): void {
      if (!emitter.emit(signal)) missed.add(signal);
    },
    signals: {
      on(signal, listener): void {
        emitter.on(signal, listener);
        if (missed.delete(signal)) queueMicrotask(() => emitter.emit(signal));
      },
      off: (signal, listener) => emitter.off(signal, listener),
    },
  };
}
