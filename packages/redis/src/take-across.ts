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
    const latest = ({ limits }: Part): number =>
      Math.max(...limits.map(({ limit }) => this.#deniedAt.get(limit.identity) ?? 0));
    return parts.toSorted((one, other) => latest(other) - latest(one));
  }
}

export function splitByLane(
  limits: readonly ResolvedLimit[],
  findLane: (limit: ResolvedLimit) => PlacedLane,
): readonly Part[] {
  const parts: { lane: PlacedLane; group: number; limits: ResolvedLimit[]; indexes: number[] }[] = [];
  limits.forEach((resolved, index) => {
    const lane = findLane(resolved);
    let part = parts.find((one) => one.lane === lane && one.group === resolved.group);
    if (part === undefined) {
      part = { lane, group: resolved.group, limits: [], indexes: [] };
      parts.push(part);
    }
    part.limits.push({ ...resolved, group: 0 });
    part.indexes.push(index);
  });
  return parts;
}

export interface AcrossAnswer {
  readonly answer: TakeAnswer;
  /** The answers of taken parts. */
  readonly held: ReadonlyMap<Part, Answer>;
}

/**
 * A request whose counters live in several slots, all or nothing as its caller sees it: parts are taken one after the
 * other, and given back if a later one denies or fails. Meanwhile others may find a part charged that is given back a
 * moment later, and a crash may leave it charged. Neither ever admits more.
 */
export async function takeAcross(
  parts: readonly Part[],
  asker: PartAsker,
  deniers: LastDeniers,
): Promise<AcrossAnswer> {
  const outcomes: LimitOutcome[] = [];
  const held = new Map<Part, Answer>();
  let atMs = 0;
  const noteOutcomes = (part: Part, said: readonly LimitOutcome[]): void => {
    part.indexes.forEach((index, i) => {
      outcomes[index] = said[i]!;
    });
  };
  let records: (LimitRecord | undefined)[] | undefined;
  const note = (
    part: Part,
    answer: Answer,
    said: readonly LimitOutcome[],
    recorded: Answer["records"] = answer.records,
  ): void => {
    atMs = Math.max(atMs, answer.atMs);
    noteOutcomes(part, said);
    if (recorded === undefined) return;
    records ??= parts.flatMap(({ indexes }) => indexes.map(() => undefined));
    for (const [i, index] of part.indexes.entries()) records[index] = recorded[i];
  };
  const peek = async (part: Part): Promise<void> => {
    const answer = await asker.peek(part);
    note(part, answer, answer.outcomes);
  };

  /**
   * A denial remains one if the rest cannot be asked: its other outcomes then only say that nothing is known against
   * them.
   */
  const peekIfPossible = async (part: Part, denial: Answer): Promise<void> => {
    await peek(part).catch(() => noteOutcomes(part, unused(part.limits, denial.atMs)));
  };

  /** All parts of a group, or none. */
  async function takeGroup(group: readonly Part[]): Promise<boolean> {
    const taken: [Part, Answer][] = [];
    const inOrder = deniers.sort(group);
    try {
      for (const [i, part] of inOrder.entries()) {
        const answer = await asker.take(part, i === inOrder.length - 1);
        if (answer.taken) {
          taken.push([part, answer]);
          continue;
        }
        deniers.note(part);
        note(part, answer, answer.outcomes);
        for (const [one, before] of taken)
          note(one, before, asker.before(one, before), asker.recordsBefore(one, before));
        await Promise.all([
          giveBack(taken.splice(0)),
          ...inOrder.slice(i + 1).map((one) => peekIfPossible(one, answer)),
        ]);
        return false;
      }
    } catch (error) {
      await giveBack(taken);
      throw error;
    }
    for (const [part, answer] of taken) {
      note(part, answer, answer.outcomes);
      held.set(part, answer);
    }
    return true;
  }

  async function giveBack(taken: readonly (readonly [Part, Answer])[]): Promise<void> {
    await Promise.all(taken.map(([part, answer]) => asker.give(part, answer)));
  }

  const enforced = parts.filter(({ group }) => group === 0);
  const shadowGroups = new Set(parts.map(({ group }) => group).filter((group) => group !== 0));
  const taken = await takeGroup(enforced);
  for (const number of shadowGroups) {
    const group = parts.filter((part) => part.group === number);
    // Under an enforced denial, shadow groups are only peeked at. One that cannot be asked changes nothing.
    const asked = taken ? takeGroup(group) : Promise.all(group.map(peek));
    await asked.catch(() => {
      for (const part of group) noteOutcomes(part, unused(part.limits, atMs));
    });
  }
  const answers = enforced.map((part) => held.get(part));
  const replayed = taken && answers.length > 0 && answers.every((answer) => answer?.replayed === true);
  return { answer: { taken, atMs, outcomes, receipt: undefined, replayed, records }, held };
}
