import type { Worker } from "node:cluster";
import type { WorkerTopic } from "../../observe/worker-link.ts";
import type { MessageToWorker } from "./messages.ts";

/** Collects pages from workers, of metrics or other things. */
export interface PageGatherer {
  /** The pages of the workers that answer in time. Never rejects. */
  gather(workers: readonly Worker[], topic: WorkerTopic, question: string): Promise<readonly string[]>;
  hear(id: number, page: string): void;
}

export function createPageGatherer(
  withinMs: number,
  send: (worker: Worker, message: MessageToWorker) => void,
): PageGatherer {
  const waiting = new Map<number, (page: string) => void>();
  let lastId = 0;
  return {
    gather(workers, topic, question): Promise<readonly string[]> {
      if (workers.length === 0) return Promise.resolve([]);
      const id = ++lastId;
      return new Promise((resolve) => {
        const pages: string[] = [];
        const settle = (): void => {
          clearTimeout(timer);
          waiting.delete(id);
          resolve(pages);
        };
        const timer = setTimeout(settle, withinMs);
        waiting.set(id, (page) => {
          pages.push(page);
          if (pages.length === workers.length) settle();
        });
        for (const worker of workers) send(worker, { kind: "page wanted", id, topic, question });
      });
    },
    hear: (id, page) => waiting.get(id)?.(page),
  };
}
