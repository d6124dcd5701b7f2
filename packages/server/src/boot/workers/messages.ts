import type { WorkerTopic } from "../../observe/worker-link.ts";

/** What the first process says to a worker. */
export type MessageToWorker =
  | { readonly kind: "begin"; readonly number: number }
  | { readonly kind: "stop"; readonly signal: NodeJS.Signals }
  | { readonly kind: "reload" }
  /** Wants the worker's page. */
  | { readonly kind: "page wanted"; readonly id: number; readonly topic: WorkerTopic }
  /** The others' pages, as it asked for. */
  | { readonly kind: "pages"; readonly id: number; readonly pages: readonly string[] };

/** What a worker says to the first process. */
export type MessageToPrimary =
  /** It is loaded, and may be told to begin. */
  | { readonly kind: "hello" }
  | { readonly kind: "listening"; readonly announcement: Announcement }
  | { readonly kind: "page"; readonly id: number; readonly page: string }
  /** Wants the pages of the others. */
  | { readonly kind: "pages wanted"; readonly id: number; readonly topic: WorkerTopic };

/** What is told to the world when a server listens. */
export interface Announcement {
  readonly greeting: string;
  readonly fields: Readonly<Record<string, unknown>>;
}
