import { hash } from "node:crypto";
import type { CompiledLimit, CompiledWindow, CounterKind, ResolvedLimit } from "sluice/store";
import { decodeWindow, encodeWindow, idleAfterMs, type WindowState } from "./window-state.ts";

/** A row of `sluice_counters`. */
export interface StoredRow {
  readonly id: string;
  readonly state: string;
  /** When it may be deleted. */
  readonly untilMs: number;
}

/** What is recorded with a limit; see `LimitRecord`. */
export interface RecordState {
  readonly denied: number;
  readonly updatedMs: number;
  readonly untilMs: number;
}

interface WrittenState {
  readonly w: Readonly<Record<string, readonly number[]>>;
  /** When the block of the subject ends, and when that was written: see `WindowState` about a clock that steps back. */
  readonly b?: readonly [number, number];
  /** The record: denied, updated, until. */
  readonly d?: readonly [number, number, number];
}

/** The counters of one limit and subject, with their block and their record: what one row holds, and one lock. */
export class CounterRow {
  readonly id: string;
  readonly #nowMs: number;
  readonly #windows = new Map<string, WindowState>();
  #blockedUntilMs: number;
  #record: RecordState | undefined;
  #untilMs: number;
  #changed = false;

  constructor(id: string, stored: StoredRow | undefined, nowMs: number) {
    this.id = id;
    this.#nowMs = nowMs;
    const {
      w,
      b: [blockedUntilMs, writtenMs] = [0, 0],
      d,
    }: WrittenState = stored === undefined || stored.state === "" ? { w: {} } : JSON.parse(stored.state);
    for (const [name, words] of Object.entries(w)) {
      const state = decodeWindow(kindOf(name), words, nowMs);
      if (state !== undefined) this.#windows.set(name, state);
    }
    this.#blockedUntilMs = blockedUntilMs - Math.max(writtenMs - nowMs, 0);
    this.#record = d === undefined ? undefined : { denied: d[0], updatedMs: d[1], untilMs: d[2] };
    this.#untilMs = stored?.untilMs ?? 0;
  }

  /** Whether it has to be written. */
  get changed(): boolean {
    return this.#changed;
  }

  find(name: string): WindowState | undefined {
    return this.#windows.get(name);
  }

  /** Undefined empties it. */
  set(name: string, state: WindowState | undefined): void {
    this.#changed = true;
    if (state === undefined) this.#windows.delete(name);
    else this.#windows.set(name, state);
  }

  get blockedMs(): number {
    return Math.max(this.#blockedUntilMs - this.#nowMs, 0);
  }

  /** Never shortens an earlier block. */
  block(forMs: number): void {
    if (this.#nowMs + forMs <= this.#blockedUntilMs) return;
    this.#changed = true;
    this.#blockedUntilMs = this.#nowMs + forMs;
  }

  get record(): RecordState | undefined {
    return this.#record !== undefined && this.#record.untilMs > this.#nowMs ? this.#record : undefined;
  }

  set record(record: RecordState) {
    this.#changed = true;
    this.#record = record;
  }

  reset(): void {
    this.#changed = true;
    this.#windows.clear();
    this.#blockedUntilMs = 0;
    this.#record = undefined;
    this.#untilMs = 0;
  }

  encode(): StoredRow {
    let untilMs = Math.max(this.#untilMs, this.#nowMs + this.blockedMs, this.record?.untilMs ?? 0);
    const w: Record<string, readonly number[]> = {};
    for (const [name, state] of this.#windows) {
      w[name] = encodeWindow(state, this.#nowMs);
      untilMs = Math.max(untilMs, Math.ceil(this.#nowMs + idleAfterMs(kindOf(name), state, this.#nowMs)));
    }
    const { record } = this;
    const written: WrittenState = {
      w,
      ...(this.blockedMs === 0 ? undefined : { b: [this.#blockedUntilMs, this.#nowMs] as const }),
      ...(record === undefined ? undefined : { d: [record.denied, record.updatedMs, record.untilMs] }),
    };
    return { id: this.id, state: JSON.stringify(written), untilMs };
  }
}

/** The row of a limit and a subject. It names neither: a database shows no more of a subject than that it was here. */
export function rowId({ limit, subject }: Pick<ResolvedLimit, "limit" | "subject">): string {
  return `c${digest(limit.identity, subject)}`;
}

/** The row that remembers a request id, or a receipt. */
export function idRow(id: string): string {
  return `i${digest("id", id)}`;
}

export function digest(kind: string, text: string): string {
  // UTF-8 has no halves of surrogate pairs.
  const whole = /\p{Surrogate}/u.test(text) ? `\0${JSON.stringify(text)}` : text;
  return hash("sha256", `${kind.length}:${kind}${whole}`, "hex").slice(0, 40);
}

/** The name of a window within its limit: `arrival:1000`. */
export function windowName({ identity }: CompiledLimit, window: CompiledWindow): string {
  return window.identity.slice(identity.length + 1);
}

function kindOf(name: string): CounterKind {
  const end = name.indexOf(":");
  return (end < 0 ? name : name.slice(0, end)) as CounterKind;
}
