import type { WorkerTopic } from "../../observe/worker-link.ts";

/** Messages from the first process to a worker. */
export type MessageToWorker =
  | { readonly kind: "begin"; readonly number: number }
  | { readonly kind: "stop"; readonly signal: NodeJS.Signals }
  | { readonly kind: "reload" }
  /** Asks for the worker's page. */
  | { readonly kind: "page wanted"; readonly id: number; readonly topic: WorkerTopic; readonly question: string }
  /** The others' pages that the worker asked for. */
  | { readonly kind: "pages"; readonly id: number; readonly pages: readonly string[] };

/** Messages from a worker to the first process. */
export type MessageToPrimary =
  /** It is loaded and ready to begin. */
  | { readonly kind: "hello" }
  | { readonly kind: "listening"; readonly announcement: Announcement }
  | { readonly kind: "page"; readonly id: number; readonly page: string }
  /** Asks for the pages of the others. */
  | { readonly kind: "pages wanted"; readonly id: number; readonly topic: WorkerTopic; readonly question: string };

/** What is announced when a server listens. */
export interface Announcement {
  readonly greeting: string;
  readonly fields: Readonly<Record<string, unknown>>;
}
