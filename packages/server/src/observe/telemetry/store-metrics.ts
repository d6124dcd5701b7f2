import { createBuckets, histogramSamples, observe } from "./buckets.ts";
import type { Family, Sample } from "./exposition.ts";

/** How a node stands with the policy store, at a scrape. */
export interface StoreReading {
  readonly state: (typeof storeStates)[number];
  /** The newest known generation, and the one in force. */
  readonly newest: number;
  readonly generation: number;
  /** Whether changes are pushed. */
  readonly pushed: boolean;
  /** The Kafka topic that carries policies: its newest complete generation, and what this process wrote to it. */
  readonly topic?: TopicReading | undefined;
  readonly killSwitch: "open" | "closed" | undefined;
  /** Policies that are disabled, and subjects that are blocked. */
  readonly disabled: number;
  readonly blocked: number;
  /**
   * How many rows of the store are left out because they cannot be used, and how many of store or files because both
   * have them.
   */
  readonly problems: number;
  readonly overridden: number;
  /** Sums of usage: waiting for the store now, stored, and dropped; and decisions whose subject is not tracked. */
  readonly usage: UsageReading;
  /** Records of denials: waiting for the store now, stored, and dropped. */
  readonly denials: DenialReading;
}

export interface TopicReading {
  readonly generation: number;
  readonly published: number;
  readonly failed: number;
}

export const noUsage: UsageReading = { waiting: 0, stored: 0, dropped: 0, untracked: 0 };

export const noDenials: DenialReading = { waiting: 0, stored: 0, dropped: 0 };

export interface DenialReading {
  readonly waiting: number;
  readonly stored: number;
  readonly dropped: number;
}

export interface UsageReading {
  readonly waiting: number;
  readonly stored: number;
  readonly dropped: number;
  readonly untracked: number;
}

export const storeStates = ["current", "stale", "away", "expired"] as const;
const killSwitchModes = ["open", "closed"] as const;

/** Seconds from a change until a node decides by it. */
const applyBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 10, 60] as const;

/** How changes of policies reach this node. */
export class StoreMetrics {
  readonly families: readonly Family[];
  readonly #takeUps = createBuckets(applyBounds);
  #takenUp = 0;
  #refused = 0;
  #heard = 0;
  #found = 0;

  constructor(read: () => StoreReading) {
    this.families = this.#createFamilies(read);
  }

  /** `seconds` since the change; undefined if unknown. */
  countApplied(seconds: number | undefined): void {
    this.#takenUp += 1;
    if (seconds !== undefined) observe(this.#takeUps, seconds);
  }

  countRefused(): void {
    this.#refused += 1;
  }

  /** A change that was announced. */
  countNotified(): void {
    this.#heard += 1;
  }

  /** A change that was not announced, or too late. */
  countFoundByPolling(): void {
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
      one("gauge", "sluice_store_reachable", "1 while the policy store is available.", () =>
        Number(["current", "stale"].includes(read().state)),
      ),
      choice(
        "sluice_store_state",
        "1 for how this node stands with the policy store: current, stale, away or expired.",
        "state",
        storeStates,
        () => read().state,
      ),
      one("gauge", "sluice_store_generation", "Newest known generation of the policy store.", () => read().newest),
      one(
        "gauge",
        "sluice_store_generation_in_force",
        "Generation of the policy store in force.",
        () => read().generation,
      ),
      one(
        "counter",
        "sluice_store_generations_taken_up_total",
        "Generations of the policy store applied.",
        () => this.#takenUp,
      ),
      one(
        "counter",
        "sluice_store_generations_refused_total",
        "Generations of the policy store that could not be applied.",
        () => this.#refused,
      ),
      {
        name: "sluice_store_take_up_seconds",
        help: "Time from a change until this node decides by it.",
        type: "histogram",
        labels: [],
        samples: () => histogramSamples(this.#takeUps, []),
      },
      one("gauge", "sluice_store_push_connected", "1 while changes are pushed to this node.", () =>
        Number(read().pushed),
      ),
      one("counter", "sluice_store_pushes_total", "Changes that were pushed to this node.", () => this.#heard),
      one(
        "counter",
        "sluice_store_found_by_looking_total",
        "Changes found by polling before they were pushed.",
        () => this.#found,
      ),
      one(
        "gauge",
        "sluice_policy_topic_generation",
        "Newest complete generation in the Kafka topic that carries policies; 0 without one.",
        () => read().topic?.generation ?? 0,
      ),
      one(
        "counter",
        "sluice_policy_topic_published_total",
        "Generations that this process wrote to the Kafka topic.",
        () => read().topic?.published ?? 0,
      ),
      one(
        "counter",
        "sluice_policy_topic_publish_failures_total",
        "Generations that this process could not write to the Kafka topic.",
        () => read().topic?.failed ?? 0,
      ),
      one(
        "gauge",
        "sluice_usage_sums_waiting",
        "Sums of usage that wait for the policy store.",
        () => read().usage.waiting,
      ),
      one("counter", "sluice_usage_sums_stored_total", "Sums of usage stored.", () => read().usage.stored),
      one(
        "counter",
        "sluice_usage_sums_dropped_total",
        "Sums of usage dropped because too many waited for the policy store.",
        () => read().usage.dropped,
      ),
      one(
        "counter",
        "sluice_usage_untracked_decisions_total",
        "Decisions whose subject has no separate usage history, because too many subjects have one.",
        () => read().usage.untracked,
      ),
      one(
        "gauge",
        "sluice_denial_records_waiting",
        "Records of denials that wait for the policy store.",
        () => read().denials.waiting,
      ),
      one("counter", "sluice_denial_records_stored_total", "Records of denials stored.", () => read().denials.stored),
      one(
        "counter",
        "sluice_denial_records_dropped_total",
        "Records of denials dropped because too many waited for the policy store.",
        () => read().denials.dropped,
      ),
      one(
        "gauge",
        "sluice_store_problems",
        "Rows of the policy store that are left out because they cannot be used.",
        () => read().problems,
      ),
      one(
        "gauge",
        "sluice_store_overridden",
        "Policies and subjects that files and the policy store both have.",
        () => read().overridden,
      ),
      one("gauge", "sluice_policies_disabled", "Policies that an operator disabled for a time.", () => read().disabled),
      one("gauge", "sluice_subjects_blocked", "Subjects that an operator keeps out for a time.", () => read().blocked),
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
