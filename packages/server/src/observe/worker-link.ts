/** What workers ask each other for: a page of metrics, or a report of hot keys. */
export type WorkerTopic = "metrics" | "hot keys";

/** The link of one of several processes behind the same ports to the others. */
export interface WorkerLink {
  /** Counts from 1; a replacement process inherits the number. */
  readonly number: number;
  /** The answers of the others that come in time. Never rejects. */
  askOthers(topic: WorkerTopic): Promise<readonly string[]>;
  /** Sets how this process answers the others. */
  answer(topic: WorkerTopic, render: () => Promise<string>): void;
}
