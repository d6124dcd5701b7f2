import type { PolicyStore, TallyRecord } from "@sluice/sql";
import type { Policy } from "sluice";
import type { Logger } from "../../observe/telemetry/logger.ts";

export interface TrialTalliesOptions {
  readonly store: Pick<PolicyStore, "note">;
  /** Tells processes apart: one that starts anew has another. */
  readonly node: string;
  readonly log: Pick<Logger, "info" | "warn">;
  /** Epoch milliseconds. Absent: the machine's clock. */
  readonly nowMs?: (() => number) | undefined;
  /** Absent: 5 s. */
  readonly flushEveryMs?: number | undefined;
}

/** Counts what this node decides by policies of which two versions are in force. */
export interface TrialTallies {
  /** For `LimiterOptions.onTrial`. Never throws, waits for nothing, and makes nothing but at the turn of a minute. */
  readonly onTrial: (policy: Policy, step: number, denied: boolean) => void;
  /** Tells the store now, as it does by itself every few seconds. Never rejects. */
  flush(): Promise<void>;
  /** Tells the rest, and ends. */
  close(): Promise<void>;
}

const minuteMs = 60_000;
/** Minutes that wait for the store, of all rollouts together; beyond that the oldest are forgotten. */
const maxWaiting = 1_000;
/** The clock may be set back: a minute or two that were counted already are not begun again. */
const maxMinutesBack = 5;
const sides = ["old", "new", "shadow"] as const;

/** What was decided in one minute: two numbers, decided and denied, for each side of each ring. */
interface MinuteTally {
  readonly rollout: string;
  readonly minute: number;
  readonly numbers: Float64Array;
  /** Counted since the store was told last. */
  fresh: boolean;
}

export function createTrialTallies(options: TrialTalliesOptions): TrialTallies {
  const { store, node, log, nowMs = Date.now, flushEveryMs = 5_000 } = options;
  const current = new Map<string, MinuteTally>();
  let waiting: MinuteTally[] = [];
  let flushing: Promise<void> | undefined;
  let failing = false;
  let lost = 0;
  let closed = false;

  function onTrial({ trial }: Policy, step: number, denied: boolean): void {
    if (trial === undefined || closed) return;
    const minute = Math.floor(nowMs() / minuteMs);
    let tally = current.get(trial.rollout);
    if (tally === undefined || (minute !== tally.minute && !isSetBack(minute, tally.minute)))
      tally = beginMinute(trial.rollout, minute, trial.steps.length);
    const side = trial.side === "old" ? 0 : trial.shadow ? 2 : 1;
    const at = (step * sides.length + side) * 2;
    const { numbers } = tally;
    // A rollout's steps never change; what lies outside of them is not ours to count.
    if (at < 0 || at >= numbers.length) return;
    numbers[at]! += 1;
    if (denied) numbers[at + 1]! += 1;
    tally.fresh = true;
  }

  function beginMinute(rollout: string, minute: number, steps: number): MinuteTally {
    const over = current.get(rollout);
    if (over?.fresh === true) keepWaiting(over);
    const tally = { rollout, minute, numbers: new Float64Array((steps + 1) * sides.length * 2), fresh: false };
    current.set(rollout, tally);
    return tally;
  }

  function keepWaiting(tally: MinuteTally): void {
    waiting.push(tally);
    if (waiting.length <= maxWaiting) return;
    lost += waiting.length - maxWaiting;
    waiting = waiting.slice(-maxWaiting);
  }

  async function tell(): Promise<void> {
    forgetEnded();
    const told = [...waiting, ...current.values()].filter(({ fresh }) => fresh);
    if (told.length === 0) return;
    const records = told.flatMap((tally) => renderTally(tally, node));
    // What is counted while the store is asked is told the next time.
    for (const tally of told) tally.fresh = false;
    try {
      await store.note((note) => note.putTallies(records));
      waiting = waiting.filter(({ fresh }) => fresh);
      if (failing) log.info("rollout.tallies_recovered", { lost });
      failing = false;
      lost = 0;
    } catch (error) {
      for (const tally of told) {
        tally.fresh = true;
        // Its minute may have ended meanwhile, when it did not seem worth keeping.
        if (current.get(tally.rollout) !== tally && !waiting.includes(tally)) keepWaiting(tally);
      }
      if (!failing) log.warn("rollout.tallies_waiting", { err: error });
      failing = true;
    }
  }

  /** Lets go of rollouts that nothing was decided by for a while. */
  function forgetEnded(): void {
    const minute = Math.floor(nowMs() / minuteMs);
    for (const [rollout, tally] of current) {
      if (Math.abs(minute - tally.minute) <= maxMinutesBack) continue;
      if (tally.fresh) keepWaiting(tally);
      current.delete(rollout);
    }
  }

  function flush(): Promise<void> {
    flushing ??= tell().finally(() => {
      flushing = undefined;
    });
    return flushing;
  }

  const timer = setInterval(() => void flush(), flushEveryMs).unref();
  return {
    onTrial,
    flush,
    close: async () => {
      closed = true;
      clearInterval(timer);
      // What began before may lack the latest.
      await flushing;
      await flush();
    },
  };
}

function isSetBack(minute: number, counted: number): boolean {
  return minute < counted && counted - minute <= maxMinutesBack;
}

function renderTally({ rollout, minute, numbers }: MinuteTally, node: string): readonly TallyRecord[] {
  const records: TallyRecord[] = [];
  for (let at = 0; at < numbers.length; at += 2) {
    const decided = numbers[at] ?? 0;
    if (decided === 0) continue;
    const cell = at / 2;
    const side = sides[cell % sides.length] ?? "old";
    const step = Math.floor(cell / sides.length);
    records.push({ rollout, node, minute, step, side, decided, denied: numbers[at + 1] ?? 0 });
  }
  return records;
}
