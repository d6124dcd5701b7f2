/** What workers may ask each other for: a page of metrics, or a report of hot keys. */
export type WorkerTopic = "metrics" | "hot keys";

/** What one of several processes behind the same ports knows of the others. */
export interface WorkerLink {
  /** From 1 on; a process that takes the place of another has its number. */
  readonly number: number;
  /** What the others say to it now, as far as they answer in time. Never rejects. */
  askOthers(topic: WorkerTopic): Promise<readonly string[]>;
  /** Says how to answer when others ask us. */
  answer(topic: WorkerTopic, render: () => Promise<string>): void;
}
