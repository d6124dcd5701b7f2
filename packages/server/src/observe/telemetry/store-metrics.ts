import { createBuckets, histogramSamples, observe } from "./buckets.ts";
import { counter, type Family, gauge, type Sample } from "./exposition.ts";

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
  readonly #applySeconds = createBuckets(applyBounds);
  #applied = 0;
  #refused = 0;
  #notified = 0;
  #foundByPolling = 0;

  constructor(read: () => StoreReading) {
    this.families = [
      ...this.#generationMetrics(read),
      ...topicMetrics(() => read().topic),
      ...historyMetrics(
        () => read().usage,
        () => read().denials,
      ),
      ...exceptionMetrics(read),
    ];
  }

  /** `seconds` since the change; undefined if unknown. */
  countApplied(seconds: number | undefined): void {
    this.#applied += 1;
    if (seconds !== undefined) observe(this.#applySeconds, seconds);
  }

  countRefused(): void {
    this.#refused += 1;
  }

  /** A change that was announced. */
  countNotified(): void {
    this.#notified += 1;
  }

  /** A change that was not announced, or too late. */
  countFoundByPolling(): void {
    this.#foundByPolling += 1;
  }

  #generationMetrics(read: () => StoreReading): readonly Family[] {
    return [
      gauge("sluice_store_reachable", "1 while the policy store is available.", () =>
        Number(["current", "stale"].includes(read().state)),
      ),
      oneOf(
        "sluice_store_state",
        "1 for how this node stands with the policy store: current, stale, away or expired.",
        "state",
        storeStates,
        () => read().state,
      ),
      gauge("sluice_store_generation", "Newest known generation of the policy store.", () => read().newest),
      gauge("sluice_store_generation_in_force", "Generation of the policy store in force.", () => read().generation),
      counter(
        "sluice_store_generations_taken_up_total",
        "Generations of the policy store applied.",
        () => this.#applied,
      ),
      counter(
        "sluice_store_generations_refused_total",
        "Generations of the policy store that could not be applied.",
        () => this.#refused,
      ),
      {
        name: "sluice_store_take_up_seconds",
        help: "Time from a change until this node decides by it.",
        type: "histogram",
        labels: [],
        samples: () => histogramSamples(this.#applySeconds, []),
      },
      gauge("sluice_store_push_connected", "1 while changes are pushed to this node.", () => Number(read().pushed)),
      counter("sluice_store_pushes_total", "Changes that were pushed to this node.", () => this.#notified),
      counter(
        "sluice_store_found_by_looking_total",
        "Changes found by polling before they were pushed.",
        () => this.#foundByPolling,
      ),
    ];
  }
}

function topicMetrics(read: () => TopicReading | undefined): readonly Family[] {
  return [
    gauge(
      "sluice_policy_topic_generation",
      "Newest complete generation in the Kafka topic that carries policies; 0 without one.",
      () => read()?.generation ?? 0,
    ),
    counter(
      "sluice_policy_topic_published_total",
      "Generations that this process wrote to the Kafka topic.",
      () => read()?.published ?? 0,
    ),
    counter(
      "sluice_policy_topic_publish_failures_total",
      "Generations that this process could not write to the Kafka topic.",
      () => read()?.failed ?? 0,
    ),
  ];
}

/** Sums of usage and records of denials, on their way to the store. */
function historyMetrics(usage: () => UsageReading, denials: () => DenialReading): readonly Family[] {
  return [
    gauge("sluice_usage_sums_waiting", "Sums of usage that wait for the policy store.", () => usage().waiting),
    counter("sluice_usage_sums_stored_total", "Sums of usage stored.", () => usage().stored),
    counter(
      "sluice_usage_sums_dropped_total",
      "Sums of usage dropped because too many waited for the policy store.",
      () => usage().dropped,
    ),
    counter(
      "sluice_usage_untracked_decisions_total",
      "Decisions whose subject has no separate usage history, because too many subjects have one.",
      () => usage().untracked,
    ),
    gauge(
      "sluice_denial_records_waiting",
      "Records of denials that wait for the policy store.",
      () => denials().waiting,
    ),
    counter("sluice_denial_records_stored_total", "Records of denials stored.", () => denials().stored),
    counter(
      "sluice_denial_records_dropped_total",
      "Records of denials dropped because too many waited for the policy store.",
      () => denials().dropped,
    ),
  ];
}

/** What the store changes of the policies in force. */
function exceptionMetrics(read: () => StoreReading): readonly Family[] {
  return [
    gauge(
      "sluice_store_problems",
      "Rows of the policy store that are left out because they cannot be used.",
      () => read().problems,
    ),
    gauge(
      "sluice_store_overridden",
      "Policies and subjects that files and the policy store both have.",
      () => read().overridden,
    ),
    gauge("sluice_policies_disabled", "Policies that an operator disabled for a time.", () => read().disabled),
    gauge("sluice_subjects_blocked", "Subjects that an operator keeps out for a time.", () => read().blocked),
    oneOf(
      "sluice_kill_switch",
      "1 while every check is allowed (open) or denied (closed) by the kill switch.",
      "mode",
      killSwitchModes,
      () => read().killSwitch,
    ),
  ];
}

/** One series for each word: 1 for the one that `now` returns, 0 for the others. */
function oneOf(name: string, help: string, label: string, words: readonly string[], now: () => unknown): Family {
  return {
    name,
    help,
    type: "gauge",
    labels: [label],
    samples: (): readonly Sample[] => {
      const current = now();
      return words.map((word) => ({ labels: [word], value: Number(word === current) }));
    },
  };
}
