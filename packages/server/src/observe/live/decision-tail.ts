import type { CheckRequest, Decision } from "sluice";

/** Decisions that a watcher wants to see. Called in the way of decisions: must be quick, and not throw. */
export type IsShown = (request: CheckRequest, decision: Decision) => boolean;

/** A decision, drawn from several alike. */
export interface DrawnDecision {
  readonly request: CheckRequest;
  readonly decision: Decision;
  readonly atMs: number;
  /** How many decisions it stands for. */
  readonly standsFor: number;
  /** Whether these are of several policies, limits or reasons. */
  readonly mixed: boolean;
}

/** What a watcher saw since it last asked. */
export interface TailWindow {
  readonly sinceMs: number;
  readonly atMs: number;
  /** Every decision that is shown: the sum of all `standsFor`. */
  readonly matched: number;
  /** Oldest first. */
  readonly drawn: readonly DrawnDecision[];
}

export interface TailWatcher {
  /** Draws at most this many decisions from those since the last call. */
  take(atMost: number): TailWindow;
  close(): void;
}

export interface DecisionTailOptions {
  /** Epoch milliseconds. */
  readonly nowMs?: (() => number) | undefined;
  /** From 0 to 1, which excludes 1. */
  readonly random?: (() => number) | undefined;
}

/** Decisions that differ in policy, limit, answer or reason are drawn separately, up to this many kinds. */
const maxKinds = 32;
/** How many decisions of a kind are kept until they are drawn from. */
const keptOfKind = 10;

/**
 * Shows a fair sample of decisions while they are made. Each kind of decision gets an equal share of the room, and of a kind each
 * decision has the same chance, so a flood of one kind does not hide another. Without a watcher a decision costs a comparison.
 */
export class DecisionTail {
  readonly #watchers = new Set<Watcher>();
  readonly #nowMs: () => number;
  readonly #random: () => number;
  #isWatched = false;

  constructor({ nowMs = Date.now, random = Math.random }: DecisionTailOptions = {}) {
    this.#nowMs = nowMs;
    this.#random = random;
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** Never throws. */
  count(request: CheckRequest, decision: Decision): void {
    if (!this.#isWatched) return;
    for (const watcher of this.#watchers) watcher.add(request, decision);
  }

  watch(isShown: IsShown): TailWatcher {
    const watcher = new Watcher(isShown, this.#nowMs, this.#random);
    this.#watchers.add(watcher);
    this.#isWatched = true;
    return {
      take: (atMost) => watcher.take(atMost),
      close: (): void => {
        this.#watchers.delete(watcher);
        this.#isWatched = this.#watchers.size > 0;
      },
    };
  }
}

interface Kept {
  readonly request: CheckRequest;
  readonly decision: Decision;
  readonly atMs: number;
}

/** Decisions alike since the last take, and an unbiased sample of them. */
interface Kind {
  count: number;
  readonly kept: Kept[];
  readonly mixed: boolean;
}

class Watcher {
  readonly #isShown: IsShown;
  readonly #nowMs: () => number;
  readonly #random: () => number;
  #sinceMs: number;
  #kinds = new Map<string, Kind>();
  #matched = 0;

  constructor(isShown: IsShown, nowMs: () => number, random: () => number) {
    this.#isShown = isShown;
    this.#nowMs = nowMs;
    this.#random = random;
    this.#sinceMs = nowMs();
  }

  add(request: CheckRequest, decision: Decision): void {
    // A preview takes nothing, and a replayed decision was shown before.
    if (decision.preview || decision.replayed || !this.#isShown(request, decision)) return;
    this.#matched += 1;
    const kind = this.#findKind(decision);
    kind.count += 1;
    const { kept } = kind;
    // Reservoir sampling: each decision of the kind is kept with the same chance.
    const place = kept.length < keptOfKind ? kept.length : Math.floor(this.#random() * kind.count);
    if (place < keptOfKind) kept[place] = { request, decision, atMs: this.#nowMs() };
  }

  take(atMost: number): TailWindow {
    const kinds = [...this.#kinds.values()];
    const sinceMs = this.#sinceMs;
    const matched = this.#matched;
    this.#kinds = new Map();
    this.#matched = 0;
    this.#sinceMs = this.#nowMs();
    const drawn = drawFairly(kinds, atMost).sort((a, b) => a.atMs - b.atMs);
    return { sinceMs, atMs: this.#sinceMs, matched, drawn };
  }

  #findKind({ policy = "", scope = "", allowed, reason }: Decision): Kind {
    const key = `${allowed ? "+" : "-"}${reason}|${policy}|${scope}`;
    const known = this.#kinds.get(key);
    if (known !== undefined) return known;
    const isRoom = this.#kinds.size < maxKinds;
    const found = isRoom ? undefined : this.#kinds.get("");
    if (found !== undefined) return found;
    const kind: Kind = { count: 0, kept: [], mixed: !isRoom };
    this.#kinds.set(isRoom ? key : "", kind);
    return kind;
  }
}

/** One of each kind in turn, the rarest first, until there is no more room. What has no room joins the last one that has. */
function drawFairly(kinds: readonly Kind[], atMost: number): DrawnDecision[] {
  const sorted = kinds.toSorted((a, b) => a.count - b.count);
  const shares = sorted.map(() => 0);
  let left = atMost;
  for (let round = 0; left > 0 && round < keptOfKind; round++) {
    for (const [i, { kept }] of sorted.entries()) {
      if (left === 0 || kept.length <= round) continue;
      shares[i]! += 1;
      left -= 1;
    }
  }
  const drawn = sorted.flatMap(({ kept, count, mixed }, i) => spreadCount(kept.slice(0, shares[i]), count, mixed));
  const unseen = sorted.reduce((sum, { count }, i) => (shares[i] === 0 ? sum + count : sum), 0);
  const last = drawn.at(-1);
  if (unseen > 0 && last !== undefined)
    drawn[drawn.length - 1] = { ...last, standsFor: last.standsFor + unseen, mixed: true };
  return drawn;
}

/** Decisions that together stand for all of their kind. */
function spreadCount(kept: readonly Kept[], count: number, mixed: boolean): readonly DrawnDecision[] {
  const each = Math.floor(count / kept.length);
  const more = count - each * kept.length;
  return kept.map((one, i) => ({ ...one, standsFor: each + (i < more ? 1 : 0), mixed }));
}
