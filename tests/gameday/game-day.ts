import type { Plot } from "./render-plot.ts";

/** full: as the page reports it. bounded: the same in seconds, as `npm test` plays it. */
export type Form = "full" | "bounded";

export interface Promised {
  /** What must hold, as a sentence without its end. */
  readonly text: string;
  /** Whether a busy machine can break it: `npm test` does not judge it then, and the page labels it. */
  readonly timed?: true;
}

export interface PlayOptions {
  readonly form: Form;
  /** How long the soak lasts. */
  readonly soakMinutes: number;
  /** The commit to upgrade from; absent: the one before the current. */
  readonly upgradeFrom?: string;
}

/** One exercise: something breaks or changes on real servers under traffic, and what was promised about it is measured. */
export interface GameDay<Key extends string = string> {
  /** `kill-switch` */
  readonly name: string;
  readonly title: string;
  /** What is done, in sentences, one a line. */
  readonly done: (options: PlayOptions) => readonly string[];
  readonly promises: Readonly<Record<Key, Promised>>;
  readonly play: (record: DayNotes<Key>, options: PlayOptions) => Promise<void>;
}

/** What a game day writes down while it is played. */
export interface DayNotes<Key extends string = string> {
  /** What was measured about a promise, and whether it was kept. Once for each. */
  judge(promise: Key, held: boolean, measured: string): void;
  /** Something else worth knowing. `timed`: it depends on the machine. */
  fact(text: string, timed?: "timed"): void;
  plot(plot: Plot): void;
  /** Closed when the day is over, last first, however it ends. */
  opened<Opened extends { close(): Promise<unknown> }>(one: Opened): Opened;
}

export interface Verdict extends Promised {
  readonly measured: string;
  readonly held: boolean;
}

export interface DayResult {
  readonly day: string;
  readonly form: Form;
  readonly tookMs: number;
  readonly verdicts: readonly Verdict[];
  readonly facts: readonly { readonly text: string; readonly timed: boolean }[];
  readonly plots: readonly Plot[];
  /** Why the day could not be played to its end. */
  readonly failure?: string;
}

/** A day's table and play agree on its promises. */
export function gameDay<Key extends string>(day: GameDay<Key>): GameDay {
  return day as unknown as GameDay;
}
