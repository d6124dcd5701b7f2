import type { PolicyStore, TallyRecord } from "@sluice/sql";
import type { Policy } from "sluice";
import type { Logger } from "../../observe/telemetry/logger.ts";

export interface TrialTalliesOptions {
  readonly store: Pick<PolicyStore, "note">;
  /** Differs between processes, and after a restart. */
  readonly node: string;
  readonly log: Pick<Logger, "info" | "warn">;
  /** Epoch milliseconds. Absent: the machine's clock. */
  readonly nowMs?: (() => number) | undefined;
  /** Absent: 5 s. */
  readonly flushEveryMs?: number | undefined;
}

/** Counts this node's decisions by policies of which two versions are in force. */
export interface TrialTallies {
  /** For `LimiterOptions.onTrial`. Never throws or waits, and allocates only once a minute. */
  readonly onTrial: (policy: Policy, step: number, denied: boolean) => void;
  /** Writes to the store now, as it does automatically every few seconds. Never rejects. */
  flush(): Promise<void>;
  /** Writes the rest, and stops. */
  close(): Promise<void>;
}

const minuteMs = 60_000;
/** Minutes that wait for the store, of all rollouts together; beyond that the oldest are dropped. */
const maxWaiting = 1_000;
/** The clock may be set back: a recent minute that was already counted is not started again. */
const maxMinutesBack = 5;
const sides = ["old", "new", "shadow"] as const;

/** The decisions of one minute: two numbers, decided and denied, for each side of each ring. */
interface MinuteTally {
  readonly rollout: string;
  readonly minute: number;
  readonly numbers: Float64Array;
  /** Counted since the last write. */
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
    // A rollout's steps never change; steps outside of them are not counted.
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

  async function writeTallies(): Promise<void> {
    dropEnded();
    const isWritten = [...waiting, ...current.values()].filter(({ fresh }) => fresh);
    if (isWritten.length === 0) return;
    const records = isWritten.flatMap((tally) => renderTally(tally, node));
    // Decisions during a write go with the next one.
    for (const tally of isWritten) tally.fresh = false;
    try {
      await store.note((note) => note.putTallies(records));
      waiting = waiting.filter(({ fresh }) => fresh);
      if (failing) log.info("rollout.tallies_recovered", { lost });
      failing = false;
      lost = 0;
    } catch (error) {
      for (const tally of isWritten) {
        tally.fresh = true;
        // Its minute may have ended meanwhile, when it seemed to have nothing to write.
        if (current.get(tally.rollout) !== tally && !waiting.includes(tally)) keepWaiting(tally);
      }
      if (!failing) log.warn("rollout.tallies_waiting", { err: error });
      failing = true;
    }
  }

  /** Drops rollouts without recent decisions. */
  function dropEnded(): void {
    const minute = Math.floor(nowMs() / minuteMs);
    for (const [rollout, tally] of current) {
      if (Math.abs(minute - tally.minute) <= maxMinutesBack) continue;
      if (tally.fresh) keepWaiting(tally);
      current.delete(rollout);
    }
  }

  function flush(): Promise<void> {
    flushing ??= writeTallies().finally(() => {
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
      // A minute that began earlier may lack the latest decisions.
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
