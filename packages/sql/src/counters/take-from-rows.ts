import { randomBytes } from "node:crypto";
import { defaultIdTtlMs } from "sluice/internal";
import type {
  LimitOutcome,
  LimitRecord,
  LookedAt,
  Receipt,
  ResolvedLimit,
  TakeAnswer,
  TakeOptions,
  TakePlan,
  WindowReading,
} from "sluice/store";
import { fits, idempotencyConflict, isRecorded, isTaken, outcomesFromPlan } from "sluice/store";
import { type CounterRow, digest, idRow, rowId, windowName } from "./counter-row.ts";
import type { RowsInTurn } from "./rows-in-turn.ts";
import { bringBack, giveTo, judgeWindow, readWindow, type TakenPart, takeFrom } from "./window-state.ts";

/** A record is kept no longer than this; see `LimitRecords`. */
const longestRecordMs = 30 * 24 * 60 * 60 * 1000;

/** A window that was examined, and where its counter is. */
interface Step extends LookedAt {
  readonly row: CounterRow;
  readonly name: string;
}

/** A request id that was taken, as its row holds it. */
interface RememberedTake {
  readonly fingerprint: string;
  readonly atMs: number;
  readonly receipt?: Receipt | undefined;
  readonly outcomes: readonly WrittenOutcome[];
}

interface WrittenReceipt {
  /** The row of the request id that the take was made under. */
  readonly id?: string | undefined;
  readonly parts: readonly TakenPart[];
}

/** Takes from several limits, all or nothing. Whatever may fail does so before anything is changed. */
export function takeFromRows(
  rows: RowsInTurn,
  limits: readonly ResolvedLimit[],
  options: TakeOptions | undefined,
): TakeAnswer {
  const id = options?.id === undefined ? undefined : idRow(options.id);
  const fingerprint = id === undefined ? "" : digest("fingerprint", options?.fingerprint ?? "");
  const known = id === undefined ? undefined : rows.mark(id);
  if (known !== undefined) {
    const remembered = JSON.parse(known) as RememberedTake;
    if (remembered.fingerprint !== fingerprint) throw idempotencyConflict(options!.id!);
    return replay(rows, limits, remembered, options?.record);
  }
  const plan = planTake(rows, limits);
  const parts = carryOut(rows, limits, plan);
  const taken = isTaken(plan, 0);
  const outcomes = outcomesFromPlan(limits, plan, true);
  const receipt =
    options?.receipt === true && parts.length > 0 ? writeReceipt(rows, parts, taken ? id : undefined) : undefined;
  const records = recordTake(rows, limits, options?.record, (index) => whatDecided(plan, limits[index]!.group, index));
  if (id !== undefined && taken) {
    const remembered: RememberedTake = {
      fingerprint,
      atMs: rows.nowMs,
      receipt,
      outcomes: outcomes.map((outcome, i) => writeOutcome(limits[i]!, outcome)),
    };
    rows.setMark(id, JSON.stringify(remembered), rows.nowMs + (options?.idTtlMs ?? defaultIdTtlMs));
  }
  return { taken, atMs: rows.nowMs, outcomes, receipt, replayed: false, records };
}

/** The same without the charge: nothing changes. */
export function peekAtRows(
  rows: RowsInTurn,
  limits: readonly ResolvedLimit[],
  record: boolean | undefined,
): TakeAnswer {
  const outcomes = outcomesFromPlan(limits, planTake(rows, limits), false);
  const records = recordTake(rows, limits, record, () => undefined);
  return { taken: false, atMs: rows.nowMs, outcomes, receipt: undefined, replayed: false, records };
}

export function readFromRows(rows: RowsInTurn, asked: ResolvedLimit): readonly WindowReading[] {
  const row = rows.row(rowId(asked));
  return asked.windows.map((window) =>
    readWindow(window, row.find(windowName(asked.limit, window)), asked.cost, rows.nowMs),
  );
}

function planTake(rows: RowsInTurn, limits: readonly ResolvedLimit[]): TakePlan<Step> {
  const steps: Step[] = [];
  const refused = new Set<number>();
  for (const [index, asked] of limits.entries()) {
    const { limit, windows, cost, group } = asked;
    const row = rows.row(rowId(asked));
    const blockedMs = limit.blockable ? row.blockedMs : 0;
    for (const window of windows) {
      const name = windowName(limit, window);
      const verdict = judgeWindow(window, row.find(name), cost, rows.nowMs);
      const step: Step = { limit: index, window, verdict, blockedMs, newlyBlockedMs: 0, row, name };
      steps.push(step);
      if (!fits(step)) refused.add(group);
    }
  }
  return { steps, refused };
}

/** Takes every group that fits, and blocks what is denied if its limit says so. */
function carryOut(rows: RowsInTurn, limits: readonly ResolvedLimit[], plan: TakePlan<Step>): readonly TakenPart[] {
  const { nowMs } = rows;
  const parts: TakenPart[] = [];
  for (const step of plan.steps) {
    const { window, verdict, row, name } = step;
    const { limit, group, cost } = limits[step.limit]!;
    if (!isTaken(plan, group)) {
      const broughtBack = bringBack(window, row.find(name));
      if (broughtBack !== undefined) row.set(name, broughtBack);
      // Under an enforced denial, shadow groups see nothing.
      const seen = group === 0 || !plan.refused.has(0);
      if (limit.blockForMs > 0 && seen && verdict.fits === "later" && step.blockedMs === 0) {
        row.block(limit.blockForMs);
        step.newlyBlockedMs = limit.blockForMs;
      }
      continue;
    }
    if (!window.charges) continue;
    const state = takeFrom(window, row.find(name), verdict, cost, nowMs);
    row.set(name, state);
    const { perMs, intervalMs, toleranceMs, kind } = window;
    parts.push({
      ...{ row: row.id, window: name, kind, cost, begun: state.begun, givenMs: state.givenMs, takenMs: nowMs },
      lastsMs: kind === "log" ? perMs : verdict.word0,
      rate: { perMs, intervalMs, toleranceMs, source: { limit: window.source.limit } },
    });
  }
  return parts;
}

/** How a limit took part in the decision; undefined if others denied, or it is in shadow mode and did not see it. */
function whatDecided(plan: TakePlan<Step>, group: number, index: number): "allowed" | "denied" | undefined {
  if (isTaken(plan, group)) return "allowed";
  if (group !== 0 && plan.refused.has(0)) return undefined;
  return plan.steps.some((step) => step.limit === index && !fits(step)) ? "denied" : undefined;
}

/** The record of each limit, after noting the decision. Undefined if no limit has one. */
function recordTake(
  rows: RowsInTurn,
  limits: readonly ResolvedLimit[],
  record: boolean | undefined,
  decided: (index: number) => "allowed" | "denied" | undefined,
): readonly (LimitRecord | undefined)[] | undefined {
  if (!limits.some((one) => isRecorded(one, record))) return undefined;
  return limits.map((asked, index): LimitRecord | undefined => {
    if (!isRecorded(asked, record)) return undefined;
    const row = rows.row(rowId(asked));
    const how = decided(index);
    if (how !== undefined) {
      const perMs = Math.max(...asked.windows.map((window) => Math.max(window.perMs, window.furthestMs)));
      row.record = {
        denied: how === "allowed" ? 0 : (row.record?.denied ?? 0) + asked.cost,
        updatedMs: rows.nowMs,
        // A block outlasts idle windows.
        untilMs: Math.ceil(rows.nowMs + Math.min(Math.max(2 * perMs, asked.limit.blockForMs), longestRecordMs)),
      };
    }
    const windows = record === true ? readFromRows(rows, asked) : [];
    return { denied: row.record?.denied ?? 0, updatedMs: row.record?.updatedMs, windows };
  });
}

function writeReceipt(rows: RowsInTurn, parts: readonly TakenPart[], id: string | undefined): Receipt {
  // The rows that it was taken from are locked before the receipt is read, so it names them.
  const name = randomBytes(12).toString("hex");
  const written: WrittenReceipt = { id, parts };
  rows.setMark(`r${name}`, JSON.stringify(written), rows.nowMs + Math.max(...parts.map(({ lastsMs }) => lastsMs)));
  return `q${name}`;
}

/** The row of a receipt; undefined if it is not one of these. */
export function receiptRow(receipt: Receipt): string | undefined {
  return /^q[0-9a-f]{24}$/.test(receipt) ? `r${receipt.slice(1)}` : undefined;
}

/** The rows that a receipt is about. */
export function receiptRows(state: string): { readonly rows: readonly string[]; readonly id: string | undefined } {
  const { id, parts } = JSON.parse(state) as WrittenReceipt;
  return { rows: parts.map(({ row }) => row), id };
}

/** Undoes a take, once. */
export function giveToRows(rows: RowsInTurn, mark: string): boolean {
  const written = rows.mark(mark);
  if (written === undefined) return false;
  rows.dropMark(mark);
  const { id, parts } = JSON.parse(written) as WrittenReceipt;
  let given = false;
  for (const part of parts) {
    const row = rows.row(part.row);
    const state = giveTo(part, row.find(part.window), rows.nowMs);
    if (state === undefined) continue;
    row.set(part.window, state);
    given = true;
  }
  // What was given back is no longer taken: repeating the request is a new one.
  if (given && id !== undefined) rows.dropMark(id);
  return given;
}

/** fits, index of the window, remaining, of the window, retry, reset, more, queue position, queue delay. */
type WrittenOutcome = readonly [LimitOutcome["fits"], ...(number | null)[]];

function writeOutcome({ windows }: ResolvedLimit, outcome: LimitOutcome): WrittenOutcome {
  const { remaining, windowRemaining, retryAfterMs, resetAfterMs, moreAfterMs, queuePosition, queueDelayMs } = outcome;
  // JSON has no infinity, and writes null.
  return [
    ...([outcome.fits, windows.indexOf(outcome.window), remaining, windowRemaining] as const),
    ...[retryAfterMs, resetAfterMs, moreAfterMs, queuePosition, queueDelayMs],
  ];
}

/** An answer again, in terms of the windows as they are now. */
function replay(
  rows: RowsInTurn,
  limits: readonly ResolvedLimit[],
  { atMs, receipt, outcomes }: RememberedTake,
  record: boolean | undefined,
): TakeAnswer {
  const records = recordTake(rows, limits, record, () => undefined);
  return {
    ...{ taken: true, atMs, receipt, replayed: true, records },
    outcomes: limits.map(({ windows }, i) => readOutcome(windows, outcomes[i])),
  };
}

function readOutcome(windows: ResolvedLimit["windows"], written: WrittenOutcome = ["now"]): LimitOutcome {
  const [fits, ...numbers] = written;
  const [at, remaining, windowRemaining, retryAfterMs, resetAfterMs, moreAfterMs, queuePosition, queueDelayMs] =
    numbers.map((number) => number ?? Number.POSITIVE_INFINITY);
  return {
    fits,
    window: windows[at ?? 0] ?? windows[0]!,
    remaining: remaining ?? 0,
    windowRemaining: windowRemaining ?? 0,
    retryAfterMs: retryAfterMs ?? 0,
    resetAfterMs: resetAfterMs ?? 0,
    moreAfterMs: moreAfterMs ?? 0,
    queuePosition: queuePosition ?? 0,
    queueDelayMs: queueDelayMs ?? 0,
  };
}
