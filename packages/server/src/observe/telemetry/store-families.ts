import { createBuckets, histogramSamples, observe } from "./buckets.ts";
import type { Family, Sample } from "./exposition.ts";

/** How a node stands to the policy store, when somebody scrapes. */
export interface StoreReading {
  readonly state: (typeof storeStates)[number];
  /** The newest generation that is known of, and the one that is decided by. */
  readonly newest: number;
  readonly generation: number;
  /** Whether changes are heard of at once. */
  readonly pushed: boolean;
  readonly killSwitch: "open" | "closed" | undefined;
  /** How much of the store is left out because it cannot be used, and how much of store or files because both have it. */
  readonly problems: number;
  readonly overridden: number;
}

export const storeStates = ["current", "stale", "away", "expired"] as const;
const killSwitchModes = ["open", "closed"] as const;

/** Seconds, from a change to a node that decides by it. */
const takeUpBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 10, 60] as const;

/** How changes of policies reach this node. */
export class StoreFigures {
  readonly families: readonly Family[];
  readonly #takeUps = createBuckets(takeUpBounds);
  #takenUp = 0;
  #refused = 0;
  #heard = 0;
  #found = 0;

  constructor(read: () => StoreReading) {
    this.families = this.#createFamilies(read);
  }

  /** `seconds` from the change; undefined where that cannot be told. */
  countTakenUp(seconds: number | undefined): void {
    this.#takenUp += 1;
    if (seconds !== undefined) observe(this.#takeUps, seconds);
  }

  countRefused(): void {
    this.#refused += 1;
  }

  /** A change that was announced. */
  countHeard(): void {
    this.#heard += 1;
  }

  /** A change that was not announced, or too late. */
  countFoundByLooking(): void {
    this.#found += 1;
  }

  #createFamilies(read: () => StoreReading): readonly Family[] {
    const one = (type: "counter" | "gauge", name: string, help: string, value: () => number): Family => ({
      name,
      help,
      type,
      labels: [],
      samples: () => [{ labels: [], value: value() }],
    });
    const choice = (
      name: string,
      help: string,
      label: string,
      words: readonly string[],
      now: () => unknown,
    ): Family => ({
      name,
      help,
      type: "gauge",
      labels: [label],
      samples: (): readonly Sample[] => {
        const current = now();
        return words.map((word) => ({ labels: [word], value: Number(word === current) }));
      },
    });
    return [
      one("gauge", "sluice_store_reachable", "1 while the policy store can be asked.", () =>
        Number(["current", "stale"].includes(read().state)),
      ),
      choice(
        "sluice_store_state",
        "1 for how this node stands to the policy store: current, stale, away or expired.",
        "state",
        storeStates,
        () => read().state,
      ),
      one(
        "gauge",
        "sluice_store_generation",
        "Newest generation of the policy store that is known of.",
        () => read().newest,
      ),
      one(
        "gauge",
        "sluice_store_generation_in_force",
        "Generation of the policy store that is decided by.",
        () => read().generation,
      ),
      one(
        "counter",
        "sluice_store_generations_taken_up_total",
        "Generations of the policy store taken up.",
        () => this.#takenUp,
      ),
      one(
        "counter",
        "sluice_store_generations_refused_total",
        "Generations of the policy store that could not be taken up.",
        () => this.#refused,
      ),
      {
        name: "sluice_store_take_up_seconds",
        help: "Time from a change until this node decides by it.",
        type: "histogram",
        labels: [],
        samples: () => histogramSamples(this.#takeUps, []),
      },
      one("gauge", "sluice_store_push_connected", "1 while changes are heard of at once.", () => Number(read().pushed)),
      one("counter", "sluice_store_pushes_total", "Changes that were heard of at once.", () => this.#heard),
      one(
        "counter",
        "sluice_store_found_by_looking_total",
        "Changes found before they were heard of.",
        () => this.#found,
      ),
      one(
        "gauge",
        "sluice_store_problems",
        "What of the policy store is left out because it cannot be used.",
        () => read().problems,
      ),
      one(
        "gauge",
        "sluice_store_overridden",
        "Policies and subjects that files and the policy store both have.",
        () => read().overridden,
      ),
      choice(
        "sluice_kill_switch",
        "1 while every check is allowed (open) or denied (closed) by the kill switch.",
        "mode",
        killSwitchModes,
        () => read().killSwitch,
      ),
    ];
  }
}
