/** What one of several processes behind the same ports knows of the others. */
export interface WorkerLink {
  /** From 1 on; a process that takes the place of another has its number. */
  readonly number: number;
  /** Pages of metrics of the others as they are now, as far as they answer in time. Never rejects. */
  pagesOfOthers(): Promise<readonly string[]>;
  /** Says how to answer when others ask for our page. */
  tellPage(render: () => Promise<string>): void;
}
