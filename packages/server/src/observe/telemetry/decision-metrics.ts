import type { Decision, DecisionReason, Policy, PolicySet, Window } from "sluice";
import { limitScope, renderWindow } from "sluice/internal";
import { type Buckets, durationBounds, histogramSamples, observe } from "./buckets.ts";
import type { NearLimit } from "./capacity-log.ts";
import {
  countWindow,
  createPolicyCounts,
  createWindowCounts,
  findVersion,
  type PolicyCounts,
  type WindowCounts,
} from "./decision-counts.ts";
import type { DecisionTotals } from "./decision-totals.ts";
import type { Family, Sample } from "./exposition.ts";

/**
 * Counts of decisions, by policy and by window. Every check ends here, so counting is additions to plain fields that
 * are found by the window's identity; labels and series exist only during a scrape.
 */
export class DecisionMetrics {
  readonly families: readonly Family[];
  readonly #maxPolicies: number;
  readonly #none = createPolicyCounts("none", undefined);
  readonly #other = createPolicyCounts("other", undefined);
  /** Policies in force with a separate label, by id. */
  #policies = new Map<string, PolicyCounts>();
  /** Limits that requests bring along and that have a separate label, by name. */
  readonly #brought = new Map<string, PolicyCounts>();
  #windows = new Map<Window, WindowCounts>();
  #previews = 0;
  #replays = 0;

  constructor(maxPolicies: number) {
    this.#maxPolicies = maxPolicies;
    this.families = this.#createFamilies();
  }

  count(decision: Decision, seconds: number): void {
    const { window, allowed, cost } = decision;
    const speaking = window === undefined ? undefined : this.#windows.get(window);
    const counts = speaking === undefined ? this.#findCounts(decision.policy) : speaking.counts;
    observe(counts.durations, seconds);
    if (decision.preview) {
      this.#previews += 1;
      return;
    }
    if (decision.shadow.length > 0) this.#countShadow(decision);
    const version = findVersion(counts, decision.version);
    if (allowed) version.allowed += 1;
    else {
      version.denied += 1;
      counts.denials[decision.reason] += 1;
    }
    // A replayed decision was charged before.
    if (decision.replayed) this.#replays += 1;
    else if (allowed) counts.costAllowed += cost;
    else counts.costDenied += cost;
    if (decision.degraded !== undefined) counts.degraded[decision.degraded][allowed ? "allowed" : "denied"] += 1;
    else if (window !== undefined) countWindow(speaking ?? counts.otherWindow, decision);
  }

  /**
   * A check lacked a dimension that a limit of the policy counts by. Policies without a separate label share one,
   * whatever they lack.
   */
  countMissing(policy: string, dimension: string): void {
    const counts = this.#policies.get(policy);
    const { missing } = counts ?? this.#other;
    const label = counts === undefined ? "other" : dimension;
    missing.set(label, (missing.get(label) ?? 0) + 1);
  }

  /** Gives limits that requests bring along separate labels. A policy with the same id shares the label. */
  label(names: readonly string[]): void {
    for (const name of names) this.#brought.set(name, createPolicyCounts(name, undefined));
  }

  /** Gives the first policies their labels, and forgets those that are gone. */
  use({ policies, fallback }: Pick<PolicySet, "policies" | "fallback">): void {
    const labelled = policies.slice(0, this.#maxPolicies);
    if (fallback !== undefined && !labelled.some(({ id }) => id === fallback.id)) labelled.push(fallback);
    const next = new Map<string, PolicyCounts>();
    this.#windows = new Map();
    for (const policy of labelled) {
      const { version } = policy;
      const counts = this.#policies.get(policy.id) ?? next.get(policy.id) ?? createPolicyCounts(policy.id, version);
      counts.domain = policy === fallback ? "*" : policy.match.domain;
      const { inForce, before } = counts;
      if (inForce.version !== version) {
        counts.before = inForce;
        // A reverted edit continues where it was.
        counts.inForce = before?.version === version ? before : { version, allowed: 0, denied: 0 };
      }
      this.#takeWindows(policy, counts, next.has(policy.id));
      next.set(policy.id, counts);
    }
    this.#policies = next;
  }

  /**
   * Windows of the policy and of its tiers, each with its counts under the same labels. Those of another version in
   * force are kept as well.
   */
  #takeWindows(policy: Policy, counts: PolicyCounts, isOneOfSeveral: boolean): void {
    const known = new Map(counts.windows.map((one) => [one.labels.join("|"), one]));
    const inUse = new Set<WindowCounts>(isOneOfSeveral ? counts.windows : []);
    const take = (scope: string, window: Window, index: number): void => {
      const labels = [policy.id, scope, String(index), window.name ?? renderWindow(window)];
      const key = labels.join("|");
      const one = known.get(key) ?? createWindowCounts(counts, labels);
      known.set(key, one);
      inUse.add(one);
      this.#windows.set(window, one);
    };
    for (const limit of policy.limits) {
      const scope = limitScope(limit);
      for (const windows of [limit.windows, ...Object.values(limit.tiers).map((tier) => tier.windows)])
        windows.slice(0, maxWindows).forEach((window, index) => {
          take(scope, window, index);
        });
    }
    counts.windows = [...inUse];
  }

  /** How often each policy came near its limits. */
  *nearLimits(): Generator<NearLimit> {
    for (const { policy, inForce, before, usedShares } of this.#policies.values()) {
      let checks = 0;
      let near = 0;
      usedShares.counts.forEach((count, i) => {
        checks += count;
        if (i > 0 && usedShares.bounds[i - 1]! >= nearShare) near += count;
      });
      yield { policy, checks, near, denied: inForce.denied + (before?.denied ?? 0) };
    }
  }

  /** Sums over all policies. */
  get totals(): DecisionTotals {
    const sums = { allowed: 0, denied: 0, degraded: 0, shadowDenied: 0 };
    const denials: Record<string, number> = {};
    const durations = new Array<number>(durationBounds.length + 1).fill(0);
    for (const counts of this.#everyPolicy()) {
      const { inForce, before, durations: buckets } = counts;
      sums.allowed += inForce.allowed + (before?.allowed ?? 0);
      sums.denied += inForce.denied + (before?.denied ?? 0);
      sums.shadowDenied += counts.shadowDenials;
      for (const { allowed, denied } of Object.values(counts.degraded)) sums.degraded += allowed + denied;
      for (const reason in counts.denials)
        denials[reason] = (denials[reason] ?? 0) + counts.denials[reason as DecisionReason];
      for (let i = 0; i < durations.length; i++) durations[i]! += buckets.counts[i]!;
    }
    return { ...sums, denials, durations };
  }

  #findCounts(policy: string | undefined): PolicyCounts {
    if (policy === undefined) return this.#none;
    return this.#policies.get(policy) ?? this.#brought.get(policy) ?? this.#other;
  }

  #countShadow({ shadow }: Decision): void {
    for (const { policy } of shadow) this.#findCounts(policy).shadowDenials += 1;
  }

  *#everyPolicy(): Generator<PolicyCounts> {
    yield* this.#policies.values();
    for (const [name, counts] of this.#brought) if (!this.#policies.has(name)) yield counts;
    yield this.#none;
    yield this.#other;
  }

  *#everyWindow(): Generator<WindowCounts> {
    for (const { windows, otherWindow } of this.#everyPolicy()) {
      yield* windows;
      yield otherWindow;
    }
  }

  /** Series of every policy. Zeros are left out, because most of what could happen never does. */
  #byPolicy(
    kind: Omit<Family, "samples">,
    read: (counts: PolicyCounts) => Iterable<readonly [labels: readonly string[], value: number]>,
  ): Family {
    const every = (): Iterable<PolicyCounts> => this.#everyPolicy();
    return {
      ...kind,
      *samples(): Generator<Sample> {
        for (const counts of every())
          for (const [labels, value] of read(counts))
            if (value > 0) yield { labels: [counts.policy, counts.domain, ...labels], value };
      },
    };
  }

  #byWindow(
    kind: Omit<Family, "samples" | "labels">,
    labels: readonly string[],
    read: (counts: WindowCounts) => Iterable<readonly [labels: readonly string[], value: number]>,
  ): Family {
    const every = (): Iterable<WindowCounts> => this.#everyWindow();
    return {
      ...kind,
      labels: [...windowLabels, ...labels],
      *samples(): Generator<Sample> {
        for (const counts of every()) {
          if (counts.allowed + counts.denied === 0) continue;
          const [policy, ...place] = counts.labels as [string, ...string[]];
          for (const [more, value] of read(counts))
            yield { labels: [policy, counts.counts.domain, ...place, ...more], value };
        }
      },
    };
  }

  #histogram(name: string, help: string, read: (counts: PolicyCounts) => Buckets): Family {
    const every = (): Iterable<PolicyCounts> => this.#everyPolicy();
    return {
      name,
      help,
      type: "histogram",
      labels: ["policy", "domain"],
      *samples(): Generator<Sample> {
        for (const counts of every()) {
          const buckets = read(counts);
          if (buckets.counts.some((count) => count > 0))
            yield* histogramSamples(buckets, [counts.policy, counts.domain]);
        }
      },
    };
  }

  #createFamilies(): readonly Family[] {
    return [...this.#checkFamilies(), ...this.#windowFamilies(), ...this.#exceptionFamilies()];
  }

  #checkFamilies(): readonly Family[] {
    return [
      this.#byPolicy(
        {
          name: "sluice_checks_total",
          help: "Checks decided, by the deciding policy (none if no policy applied), its version and the answer.",
          type: "counter",
          labels: ["policy", "domain", "version", "allowed"],
        },
        ({ inForce, before }) =>
          [...(before === undefined ? [] : [before]), inForce].flatMap(({ version, allowed, denied }) => [
            [[versionLabel(version), "true"], allowed] as const,
            [[versionLabel(version), "false"], denied] as const,
          ]),
      ),
      this.#byPolicy(
        {
          name: "sluice_denials_total",
          help: "Checks denied, by the deciding policy and the reason of the decision.",
          type: "counter",
          labels: ["policy", "domain", "reason"],
        },
        ({ denials }) => Object.entries(denials).map(([reason, count]) => [[reason], count] as const),
      ),
      this.#byPolicy(
        {
          name: "sluice_cost_total",
          help: "Cost of checks, by the deciding policy and the answer: what was taken, and what was denied.",
          type: "counter",
          labels: ["policy", "domain", "allowed"],
        },
        ({ costAllowed, costDenied }) => [
          [["true"], costAllowed],
          [["false"], costDenied],
        ],
      ),
      this.#histogram(
        "sluice_check_duration_seconds",
        "How long a decision took, by the deciding policy, transport excluded.",
        ({ durations }) => durations,
      ),
    ];
  }

  #windowFamilies(): readonly Family[] {
    return [
      this.#byWindow(
        {
          name: "sluice_limiting_window_total",
          help: "Checks by the deciding window: the longest wait of a denial, the smallest share left of an allowance.",
          type: "counter",
        },
        ["allowed"],
        ({ allowed, denied }) => [
          [["true"], allowed],
          [["false"], denied],
        ],
      ),
      this.#byWindow(
        {
          name: "sluice_window_used",
          help: "How much of the last deciding window was used: a sample, of a random counter.",
          type: "gauge",
        },
        [],
        ({ used }) => [[[], used]],
      ),
      this.#byWindow(
        {
          name: "sluice_window_remaining",
          help: "How much of the last deciding window was left: a sample, of a random counter.",
          type: "gauge",
        },
        [],
        ({ remaining }) => [[[], remaining]],
      ),
      this.#histogram(
        "sluice_window_used_ratio",
        "How full the deciding window was, 1 being full, by policy.",
        ({ usedShares }) => usedShares,
      ),
    ];
  }

  /** Checks that were not decided in the usual way. */
  #exceptionFamilies(): readonly Family[] {
    return [
      this.#byPolicy(
        {
          name: "sluice_degraded_decisions_total",
          help: "Checks decided without the counters, by the deciding policy, why they were unavailable, and the answer.",
          type: "counter",
          labels: ["policy", "domain", "reason", "allowed"],
        },
        ({ degraded }) =>
          Object.entries(degraded).flatMap(([reason, { allowed, denied }]) => [
            [[reason, "true"], allowed] as const,
            [[reason, "false"], denied] as const,
          ]),
      ),
      this.#byPolicy(
        {
          name: "sluice_shadow_denials_total",
          help: "Checks that a policy in shadow mode would have denied.",
          type: "counter",
          labels: ["policy", "domain"],
        },
        ({ shadowDenials }) => [[[], shadowDenials]],
      ),
      this.#byPolicy(
        {
          name: "sluice_missing_dimensions_total",
          help: "Checks that lacked a dimension which a limit of the policy counts by. Where the limit says nothing else, all of them share one counter.",
          type: "counter",
          labels: ["policy", "domain", "dimension"],
        },
        ({ missing }) => [...missing].map(([dimension, count]) => [[dimension], count] as const),
      ),
      {
        name: "sluice_previews_total",
        help: "Checks asked as a preview.",
        type: "counter",
        labels: [],
        samples: () => [{ labels: [], value: this.#previews }],
      },
      {
        name: "sluice_replays_total",
        help: "Checks answered from an earlier decision with the same id.",
        type: "counter",
        labels: [],
        samples: () => [{ labels: [], value: this.#replays }],
      },
    ];
  }
}

const windowLabels = ["policy", "domain", "scope", "window", "name"];
/** The share at which a window counts as nearly full; one of `shareBounds`. */
const nearShare = 0.8;
/** The most windows of a limit, or of one of its tiers, with separate labels. */
const maxWindows = 10;

function versionLabel(version: number | undefined): string {
  return version === undefined ? "" : String(version);
}
