import type { HoldAnswer, HoldId, HoldStore } from "sluice/store";
import { unknownHold } from "sluice/store";
import type { AskCounts, ScriptTuning } from "./ask/lane.ts";
import { callScript } from "./ask/script-calls.ts";
import { scripts } from "./scripts.generated.ts";
import type { PlacedLane, Site } from "./site.ts";
import type { Sites } from "./sites.ts";

/** A hold has one part for each place that it is counted in. */
const mostParts = 100;
/** How many holds of a lane are read at once when looking for those that are due. */
const mostRead = 100;
const lookEveryMs = 1000;
/** Every so many looks also at lanes in which this process holds nothing: others may have ended before their holds. */
const looksPerRound = 10;

const states = ["unknown", "held", "expired", "settled"] as const;

type Action = "commit" | "extend" | "expire" | "undo";

export interface RedisHoldsOptions {
  readonly sites: Sites;
  readonly counts: AskCounts;
  /** How long a server may take. */
  readonly patienceMs: number;
  readonly tune: ScriptTuning | undefined;
}

/**
 * Settles holds by their id, `h<site>.<lane>.<name>` for each place, joined by `+`, and lets those expire that are not
 * settled: each lane has an index of its holds by when they expire. A process that has made a hold looks at the lanes
 * with due ones every second, and at all others every ten, so holds of a process that crashed expire as well.
 */
export class RedisHolds implements HoldStore {
  readonly #options: RedisHoldsOptions;
  /** When the next hold of a lane expires, as far as this process knows. */
  readonly #due = new Map<PlacedLane, number>();
  /** Lanes that are being looked at. */
  readonly #looking = new Set<PlacedLane>();
  #timer: NodeJS.Timeout | undefined;
  #looks = 0;

  constructor(options: RedisHoldsOptions) {
    this.#options = options;
  }

  commit(id: HoldId, actual: number, last: boolean): Promise<HoldAnswer> {
    return this.#settle(id, "commit", actual, last);
  }

  extend(id: HoldId, holdMs: number): Promise<HoldAnswer> {
    return this.#settle(id, "extend", holdMs, false);
  }

  /** Undoes a hold of one place, of a request that another place denied. */
  async undo(site: Site, lane: PlacedLane, name: string): Promise<boolean> {
    const { state } = await this.#call(site, lane, name, "undo", 0, false);
    return state !== "unknown";
  }

  /** A hold was made there. */
  note(lane: PlacedLane, holdMs: number): void {
    this.#due.set(lane, Math.min(this.#due.get(lane) ?? Number.POSITIVE_INFINITY, performance.now() + holdMs));
    if (this.#timer !== undefined || this.#options.tune !== undefined || this.#options.sites.closed) return;
    this.#timer = setInterval(() => this.#look(), lookEveryMs).unref();
  }

  /** Lets everything expire whose time is up, in every lane. */
  async expire(): Promise<void> {
    for (const site of this.#options.sites.all) for (const lane of site.lanes) await this.#expireIn(site, lane);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#due.clear();
  }

  #look(): void {
    this.#looks += 1;
    const nowMs = performance.now();
    const everywhere = this.#looks % looksPerRound === 0;
    for (const site of this.#options.sites.all) {
      for (const lane of site.lanes) {
        if (this.#looking.has(lane)) continue;
        if (!everywhere && (this.#due.get(lane) ?? Number.POSITIVE_INFINITY) > nowMs) continue;
        this.#looking.add(lane);
        // A lane that cannot be asked is asked again: its holds are noted on the server.
        this.#expireIn(site, lane)
          .catch(() => this.#due.set(lane, nowMs + lookEveryMs))
          .finally(() => this.#looking.delete(lane));
      }
    }
  }

  /** The earliest first, until one is not due yet. */
  async #expireIn(site: Site, lane: PlacedLane): Promise<void> {
    this.#due.delete(lane);
    const command = ["ZRANGE", lane.names.holdIndex(), "0", String(mostRead - 1)];
    for (;;) {
      const names = await site.send(lane.slot, this.#options.patienceMs, (shard) => shard.send(lane.slot, command));
      if (!Array.isArray(names)) return;
      for (const name of names) {
        const { state, leftMs } = await this.#call(site, lane, String(name), "expire", 0, false);
        if (state !== "held") continue;
        this.#due.set(lane, Math.min(this.#due.get(lane) ?? Number.POSITIVE_INFINITY, performance.now() + leftMs));
        return;
      }
      // All of them have left the index.
      if (names.length < mostRead) return;
    }
  }

  async #settle(id: HoldId, action: Action, number: number, last: boolean): Promise<HoldAnswer> {
    const parts = id.split("+");
    if (parts.length > mostParts) return unknownHold;
    const places = parts.map((part) => this.#find(part));
    const known = places.filter((place) => place !== undefined);
    if (known.length < places.length) return unknownHold;
    const answers = await Promise.all(
      known.map(({ site, lane, name }) => this.#call(site, lane, name, action, number, last)),
    );
    return joinAnswers(answers);
  }

  #find(part: string): { readonly site: Site; readonly lane: PlacedLane; readonly name: string } | undefined {
    const [, number, index, name] = /^h(\d+)\.(\d+)\.([\w-]+)$/.exec(part) ?? [];
    const site = number === undefined ? undefined : this.#options.sites.findByNumber(Number(number));
    const lane = site?.lanes[Number(index)];
    return site === undefined || lane === undefined || name === undefined ? undefined : { site, lane, name };
  }

  async #call(
    site: Site,
    { names, slot }: PlacedLane,
    name: string,
    action: Action,
    number: number,
    last: boolean,
  ): Promise<PartAnswer> {
    const { tune, counts, patienceMs } = this.#options;
    const script = (tune?.scripts ?? scripts).settleHold;
    const args = [name, action, String(number), last ? "1" : "0", ...(tune?.extraArguments() ?? [])];
    const keys = [names.hold(name), names.holdIndex()];
    const onLoad = (): void => {
      counts.loads += 1;
    };
    const reply = await site.send(slot, patienceMs, (shard) => callScript(shard, slot, script, keys, args, onLoad));
    return decodePart(reply);
  }
}

interface PartAnswer extends HoldAnswer {
  readonly leftMs: number;
}

function decodePart(reply: unknown): PartAnswer {
  if (!Array.isArray(reply) || reply.length < 8) throw new Error(`a script answered ${JSON.stringify(reply)}`);
  const [nowUs, , state, amount, actual, expired, expiresUs, replayed] = reply.map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return {
    state: states[state] ?? "unknown",
    amount,
    actual,
    overdraft: Math.max(actual - amount, 0),
    expired: expired === 1,
    expiresAtMs: Math.round(expiresUs / 1000),
    replayed: replayed === 1,
    leftMs: Math.max((expiresUs - nowUs) / 1000, 0),
  };
}

/** How a hold in several places stands. A place that has lost it says nothing. */
function joinAnswers(parts: readonly PartAnswer[]): HoldAnswer {
  const known = parts.filter(({ state }) => state !== "unknown");
  const first = known[0];
  if (first === undefined) return unknownHold;
  const { leftMs: _, ...one } = first;
  if (known.length === 1) return one;
  const actual = Math.max(...known.map((part) => part.actual));
  const some = (state: HoldAnswer["state"]): boolean => known.some((part) => part.state === state);
  return {
    ...one,
    state: some("held") ? "held" : some("expired") ? "expired" : "settled",
    actual,
    overdraft: Math.max(actual - one.amount, 0),
    expired: known.some(({ expired }) => expired),
    expiresAtMs: Math.min(...known.map(({ expiresAtMs }) => expiresAtMs)),
    replayed: known.every(({ replayed }) => replayed),
  };
}
