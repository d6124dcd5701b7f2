/** What workers ask each other for: a page of metrics, a report of hot keys, what the console shows, or to end a session. */
export type WorkerTopic = "metrics" | "hot keys" | "sign-in code" | "session end" | "live overview" | "live decisions";

/** The link of one of several processes behind the same ports to the others. */
export interface WorkerLink {
  /** Counts from 1; a replacement process inherits the number. */
  readonly number: number;
  /** The answers of the others that come in time. Never rejects. */
  askOthers(topic: WorkerTopic, question?: string): Promise<readonly string[]>;
  /** Sets how this process answers the others. */
  answer(topic: WorkerTopic, render: (question: string) => Promise<string>): void;
}
