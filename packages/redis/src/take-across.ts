import type { LimitOutcome, LimitRecord, ResolvedLimit, TakeAnswer } from "sluice/store";
import { unused } from "./ask/decode-reply.ts";
import type { Answer } from "./ask/question.ts";
import type { PlacedLane } from "./site.ts";

/** The limits of one group of a request that live in one lane, and their places in the request. */
export interface Part {
  readonly lane: PlacedLane;
  readonly group: number;
  /** With group 0: in a separate call, the group is the enforced one. */
  readonly limits: readonly ResolvedLimit[];
  readonly indexes: readonly number[];
}

/** How parts are asked. */
export interface PartAsker {
  /** Takes, so that it can be given back; the last of a group need not be. */
  take(part: Part, isLast: boolean): Promise<Answer>;
  peek(part: Part): Promise<Answer>;
  /** How a part stood before it was taken. */
  before(part: Part, answer: Answer): readonly LimitOutcome[];
  /** The record of a part, with its windows as they stood before it was taken. */
  recordsBefore(part: Part, answer: Answer): Answer["records"];
  /** Gives back what a part took. Never rejects: what cannot be given back stays charged. */
  give(part: Part, answer: Answer): Promise<void>;
}

/** Which limits denied lately, so that they are asked first. */
export class LastDeniers {
  readonly #deniedAt = new Map<string, number>();
  #number = 0;

  note({ limits }: Part): void {
    if (this.#deniedAt.size > 10_000) this.#deniedAt.clear();
    this.#number += 1;
    for (const { limit } of limits) this.#deniedAt.set(limit.identity, this.#number);
  }

  /** The part that denied last comes first: its next denial then costs one call, and nothing has to be given back. */
  sort(parts: readonly Part[]): readonly Part[] {
    return this.#deniedAt.size === 0 ? parts : parts.toSorted((one, other) => this.#latest(other) - this.#latest(one));
  }

  #latest({ limits }: Part): number {
    let latest = 0;
    for (const { limit } of limits) latest = Math.max(latest, this.#deniedAt.get(limit.identity) ?? 0);
    return latest;
  }
}

export function splitByLane(
  limits: readonly ResolvedLimit[],
  findLane: (limit: ResolvedLimit) => PlacedLane,
): readonly Part[] {
  const parts: { lane: PlacedLane; group: number; limits: ResolvedLimit[]; indexes: number[] }[] = [];
  for (let index = 0; index < limits.length; index++) {
    const resolved = limits[index]!;
    const lane = findLane(resolved);
    let part = parts.find((one) => one.lane === lane && one.group === resolved.group);
    if (part === undefined) {
      part = { lane, group: resolved.group, limits: [], indexes: [] };
      parts.push(part);
    }
    part.limits.push(resolved.group === 0 ? resolved : { ...resolved, group: 0 });
    part.indexes.push(index);
  }
  return parts;
}

function notesValues({ limits }: Part): boolean {
  return limits.some(({ limit }) => limit.distinct !== undefined);
}

/** A part that was taken, and its answer. */
export interface TakenPart {
  readonly part: Part;
  readonly answer: Answer;
}

/**
 * A request whose counters live in several slots, all or nothing as its caller sees it: parts are taken one after the
 * other, and given back if a later one denies or fails. Meanwhile others may find a part charged that is given back a
 * moment later, and a crash may leave it charged. Neither ever admits more.
 */
export class AcrossTake {
  readonly #parts: readonly Part[];
  readonly #asker: PartAsker;
  readonly #deniers: LastDeniers;
  readonly #outcomes: LimitOutcome[] = [];
  readonly #held: TakenPart[] = [];
  #records: (LimitRecord | undefined)[] | undefined;
  #atMs = 0;

  constructor(parts: readonly Part[], asker: PartAsker, deniers: LastDeniers) {
    this.#parts = parts;
    this.#asker = asker;
    this.#deniers = deniers;
  }

  /** The taken parts, once it has run. */
  get held(): readonly TakenPart[] {
    return this.#held;
  }

  async run(): Promise<TakeAnswer> {
    const parts = this.#parts;
    const isEnforced = parts.every(({ group }) => group === 0);
    const taken = await this.#takeGroup(isEnforced ? parts : parts.filter(({ group }) => group === 0));
    const replayed = taken && this.#held.length > 0 && this.#held.every(({ answer }) => answer.replayed);
    if (!isEnforced) await this.#takeShadows(taken);
    return {
      taken,
      atMs: this.#atMs,
      outcomes: this.#outcomes,
      receipt: undefined,
      replayed,
      records: this.#records,
    };
  }

  /** Under an enforced denial, shadow groups are only peeked at. One that cannot be asked changes nothing. */
  async #takeShadows(taken: boolean): Promise<void> {
    const groups = new Set(this.#parts.map(({ group }) => group).filter((group) => group !== 0));
    for (const number of groups) {
      const group = this.#parts.filter((part) => part.group === number);
      const asked = taken ? this.#takeGroup(group) : Promise.all(group.map((part) => this.#peek(part)));
      await asked.catch(() => {
        for (const part of group) this.#noteOutcomes(part, unused(part.limits, this.#atMs));
      });
    }
  }

  /** All parts of a group, or none. */
  async #takeGroup(group: readonly Part[]): Promise<boolean> {
    const taken: TakenPart[] = [];
    try {
      const inOrder = await this.#sort(group);
      for (let i = 0; i < inOrder.length; i++) {
        const part = inOrder[i]!;
        const answer = await this.#asker.take(part, i === inOrder.length - 1);
        if (!answer.taken) {
          await this.#deny(part, answer, taken.splice(0), inOrder.slice(i + 1));
          return false;
        }
        taken.push({ part, answer });
      }
    } catch (error) {
      await this.#giveBack(taken);
      throw error;
    }
    for (const one of taken) {
      this.#note(one.part, one.answer, one.answer.outcomes, one.answer.records);
      this.#held.push(one);
    }
    return true;
  }

  /**
   * Distinct values come last, because nothing takes them back. If they live in several slots, the one that has no room
   * comes first: only a request in between can then leave a value noted although the rest denies.
   */
  async #sort(group: readonly Part[]): Promise<readonly Part[]> {
    const sorted = this.#deniers.sort(group);
    const noting = sorted.filter(notesValues);
    if (noting.length === 0) return sorted;
    const others = sorted.filter((part) => !notesValues(part));
    if (noting.length === 1) return [...others, ...noting];
    const peeked = await Promise.all(noting.map((part) => this.#asker.peek(part)));
    const hasRoom = (at: number): boolean => peeked[at]!.outcomes.every(({ fits }) => fits === "now");
    return [...others, ...noting.filter((_, at) => !hasRoom(at)), ...noting.filter((_, at) => hasRoom(at))];
  }

  async #deny(denying: Part, denial: Answer, taken: readonly TakenPart[], rest: readonly Part[]): Promise<void> {
    const asker = this.#asker;
    this.#deniers.note(denying);
    this.#note(denying, denial, denial.outcomes, denial.records);
    for (const { part, answer } of taken)
      this.#note(part, answer, asker.before(part, answer), asker.recordsBefore(part, answer));
    await Promise.all([this.#giveBack(taken), ...rest.map((part) => this.#peekIfPossible(part, denial))]);
  }

  async #peek(part: Part): Promise<void> {
    const answer = await this.#asker.peek(part);
    this.#note(part, answer, answer.outcomes, answer.records);
  }

  /**
   * A denial remains one if the rest cannot be asked: its other outcomes then only say that nothing is known against
   * them.
   */
  async #peekIfPossible(part: Part, denial: Answer): Promise<void> {
    await this.#peek(part).catch(() => this.#noteOutcomes(part, unused(part.limits, denial.atMs)));
  }

  async #giveBack(taken: readonly TakenPart[]): Promise<void> {
    await Promise.all(taken.map(({ part, answer }) => this.#asker.give(part, answer)));
  }

  #note(part: Part, { atMs }: Answer, said: readonly LimitOutcome[], recorded: Answer["records"]): void {
    this.#atMs = Math.max(this.#atMs, atMs);
    this.#noteOutcomes(part, said);
    if (recorded === undefined) return;
    this.#records ??= this.#parts.flatMap(({ indexes }) => indexes.map(() => undefined));
    for (const [i, index] of part.indexes.entries()) this.#records[index] = recorded[i];
  }

  #noteOutcomes({ indexes }: Part, said: readonly LimitOutcome[]): void {
    for (let i = 0; i < indexes.length; i++) this.#outcomes[indexes[i]!] = said[i]!;
  }
}
