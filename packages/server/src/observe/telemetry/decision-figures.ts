import {
  type Decision,
  type DecisionReason,
  type DegradedReason,
  type Policy,
  type PolicySet,
  renderWindow,
  type Window,
} from "sluice";
import { limitScope } from "sluice/store";
import { type Buckets, createBuckets, durationBounds, histogramSamples, observe, shareBounds } from "./buckets.ts";
import type { NearLimit } from "./capacity-log.ts";
import type { Family, Sample } from "./exposition.ts";

/**
 * What decisions come to, by policy and by window. Every check ends here, so counting is additions to plain fields that are
 * found by the window's identity; labels and series exist only while somebody scrapes.
 */
export class DecisionFigures {
  readonly families: readonly Family[];
  readonly #maxPolicies: number;
  readonly #none = createPolicyFigures("none", undefined);
  readonly #other = createPolicyFigures("other", undefined);
  /** Policies in force that have a label of their own, by id. */
  #policies = new Map<string, PolicyFigures>();
  /** Limits that requests bring along and that have a label of their own, by name. */
  readonly #brought = new Map<string, PolicyFigures>();
  #windows = new Map<Window, WindowFigures>();
  #previews = 0;
  #replays = 0;

  constructor(maxPolicies: number) {
    this.#maxPolicies = maxPolicies;
    this.families = this.#createFamilies();
  }

  count(decision: Decision, seconds: number): void {
    const { window, allowed, cost } = decision;
    const speaking = window === undefined ? undefined : this.#windows.get(window);
    const figures = speaking === undefined ? this.#figuresOf(decision.policy) : speaking.figures;
    observe(figures.durations, seconds);
    if (decision.preview) {
      this.#previews += 1;
      return;
    }
    if (decision.shadow.length > 0) this.#countShadow(decision);
    const version = versionOf(figures, decision.version);
    if (allowed) version.allowed += 1;
    else {
      version.denied += 1;
      figures.denials[decision.reason] += 1;
    }
    // What was decided before was charged before.
    if (decision.replayed) this.#replays += 1;
    else if (allowed) figures.costAllowed += cost;
    else figures.costDenied += cost;
    if (decision.degraded !== undefined) figures.degraded[decision.degraded][allowed ? "allowed" : "denied"] += 1;
    else if (window !== undefined) countWindow(speaking ?? figures.otherWindow, decision);
  }

  /** A check lacked a dimension that a limit of the policy counts by. Policies without a label of their own share one, whatever they lack. */
  countMissing(policy: string, dimension: string): void {
    const figures = this.#policies.get(policy);
    const { missing } = figures ?? this.#other;
    const label = figures === undefined ? "other" : dimension;
    missing.set(label, (missing.get(label) ?? 0) + 1);
  }

  /** Gives limits that requests bring along a label of their own. Where a policy has the same id, it is that of both. */
  label(names: readonly string[]): void {
    for (const name of names) this.#brought.set(name, createPolicyFigures(name, undefined));
  }

  /** Gives policies their labels, the first ones, and forgets those that are gone. */
  use({ policies, fallback }: Pick<PolicySet, "policies" | "fallback">): void {
    const labelled = policies.slice(0, this.#maxPolicies);
    if (fallback !== undefined && !labelled.some(({ id }) => id === fallback.id)) labelled.push(fallback);
    const next = new Map<string, PolicyFigures>();
    this.#windows = new Map();
    for (const policy of labelled) {
      const { version } = policy;
      const figures = this.#policies.get(policy.id) ?? next.get(policy.id) ?? createPolicyFigures(policy.id, version);
      figures.domain = policy === fallback ? "*" : policy.match.domain;
      const { inForce, before } = figures;
      if (inForce.version !== version) {
        figures.before = inForce;
        // An edit that was taken back goes on where it was.
        figures.inForce = before?.version === version ? before : { version, allowed: 0, denied: 0 };
      }
      this.#takeWindows(policy, figures, next.has(policy.id));
      next.set(policy.id, figures);
    }
    this.#policies = next;
  }

  /**
   * Windows of the policy and of its tiers, each with what was counted for it under the same labels. Those of another version
   * that is in force as well are kept beside them.
   */
  #takeWindows(policy: Policy, figures: PolicyFigures, besideOthers: boolean): void {
    const known = new Map(figures.windows.map((one) => [one.labels.join("|"), one]));
    const inUse = new Set<WindowFigures>(besideOthers ? figures.windows : []);
    const take = (scope: string, window: Window, index: number): void => {
      const labels = [policy.id, scope, String(index), window.name ?? renderWindow(window)];
      const key = labels.join("|");
      const one = known.get(key) ?? createWindowFigures(figures, labels);
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
    figures.windows = [...inUse];
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

  #figuresOf(policy: string | undefined): PolicyFigures {
    if (policy === undefined) return this.#none;
    return this.#policies.get(policy) ?? this.#brought.get(policy) ?? this.#other;
  }

  #countShadow({ shadow }: Decision): void {
    for (const { policy } of shadow) this.#figuresOf(policy).shadowDenials += 1;
  }

  *#everyPolicy(): Generator<PolicyFigures> {
    yield* this.#policies.values();
    for (const [name, figures] of this.#brought) if (!this.#policies.has(name)) yield figures;
    yield this.#none;
    yield this.#other;
  }

  *#everyWindow(): Generator<WindowFigures> {
    for (const { windows, otherWindow } of this.#everyPolicy()) {
      yield* windows;
      yield otherWindow;
    }
  }

  /** Series of every policy. What never happened is left out, because most of what could happen never does. */
  #byPolicy(
    kind: Omit<Family, "samples">,
    read: (figures: PolicyFigures) => Iterable<readonly [labels: readonly string[], value: number]>,
  ): Family {
    const every = (): Iterable<PolicyFigures> => this.#everyPolicy();
    return {
      ...kind,
      *samples(): Generator<Sample> {
        for (const figures of every())
          for (const [labels, value] of read(figures))
            if (value > 0) yield { labels: [figures.policy, figures.domain, ...labels], value };
      },
    };
  }

  #byWindow(
    kind: Omit<Family, "samples" | "labels">,
    labels: readonly string[],
    read: (figures: WindowFigures) => Iterable<readonly [labels: readonly string[], value: number]>,
  ): Family {
    const every = (): Iterable<WindowFigures> => this.#everyWindow();
    return {
      ...kind,
      labels: [...windowLabels, ...labels],
      *samples(): Generator<Sample> {
        for (const figures of every()) {
          if (figures.allowed + figures.denied === 0) continue;
          const [policy, ...place] = figures.labels as [string, ...string[]];
          for (const [more, value] of read(figures))
            yield { labels: [policy, figures.figures.domain, ...place, ...more], value };
        }
      },
    };
  }

  #histogram(name: string, help: string, read: (figures: PolicyFigures) => Buckets): Family {
    const every = (): Iterable<PolicyFigures> => this.#everyPolicy();
    return {
      name,
      help,
      type: "histogram",
      labels: ["policy", "domain"],
      *samples(): Generator<Sample> {
        for (const figures of every()) {
          const buckets = read(figures);
          if (buckets.counts.some((count) => count > 0))
            yield* histogramSamples(buckets, [figures.policy, figures.domain]);
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
          help: "Checks decided, by the policy that spoke (none where no policy applied), its version and the answer.",
          type: "counter",
          labels: ["policy", "domain", "version", "allowed"],
        },
        ({ inForce, before }) =>
          [...(before === undefined ? [] : [before]), inForce].flatMap(({ version, allowed, denied }) => [
            [[labelOf(version), "true"], allowed] as const,
            [[labelOf(version), "false"], denied] as const,
          ]),
      ),
      this.#byPolicy(
        {
          name: "sluice_denials_total",
          help: "Checks denied, by the policy that spoke and the reason of the decision.",
          type: "counter",
          labels: ["policy", "domain", "reason"],
        },
        ({ denials }) => Object.entries(denials).map(([reason, count]) => [[reason], count] as const),
      ),
      this.#byPolicy(
        {
          name: "sluice_cost_total",
          help: "Cost of checks, by the policy that spoke and the answer: what was taken, and what was asked for and denied.",
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
        "How long a decision took, by the policy that spoke, transport excluded.",
        ({ durations }) => durations,
      ),
    ];
  }

  #windowFamilies(): readonly Family[] {
    return [
      this.#byWindow(
        {
          name: "sluice_limiting_window_total",
          help: "Checks by the window that spoke: the longest wait of a denial, the smallest share left of an allowance.",
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
          help: "How much was used of the window that spoke last, a sample: whose counter that was is chance.",
          type: "gauge",
        },
        [],
        ({ used }) => [[[], used]],
      ),
      this.#byWindow(
        {
          name: "sluice_window_remaining",
          help: "How much was left of the window that spoke last, a sample: whose counter that was is chance.",
          type: "gauge",
        },
        [],
        ({ remaining }) => [[[], remaining]],
      ),
      this.#histogram(
        "sluice_window_used_ratio",
        "How full the window was that spoke, 1 being full, by policy.",
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
          help: "Checks decided without the counters, by the policy that spoke, why they could not be asked, and the answer.",
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
/** A window is nearly full from here on; one of `shareBounds`. */
const nearShare = 0.8;
/** Most windows of a limit, or of one of its tiers, with labels of their own. */
const maxWindows = 10;

interface PolicyFigures {
  readonly policy: string;
  /** The policy's domain: one for each policy, so it adds no series. `*` for the default policy, empty where there is no policy. */
  domain: string;
  inForce: VersionFigures;
  /** The version before, so that what was counted last under it is still scraped; while two are in force, the older. */
  before: VersionFigures | undefined;
  costAllowed: number;
  costDenied: number;
  readonly denials: Record<DecisionReason, number>;
  readonly durations: Buckets;
  readonly usedShares: Buckets;
  readonly degraded: Readonly<Record<DegradedReason, { allowed: number; denied: number }>>;
  shadowDenials: number;
  /** Checks that lacked a dimension, by its name: one of those that the policy's limits count by. */
  readonly missing: Map<string, number>;
  windows: readonly WindowFigures[];
  /** Windows that no policy has: custom limits of subjects, and limits that requests bring along. */
  readonly otherWindow: WindowFigures;
}

interface VersionFigures {
  /** Undefined for limits that requests bring along. */
  readonly version: number | undefined;
  allowed: number;
  denied: number;
}

interface WindowFigures {
  readonly figures: PolicyFigures;
  readonly labels: readonly string[];
  allowed: number;
  denied: number;
  used: number;
  remaining: number;
}

function labelOf(version: number | undefined): string {
  return version === undefined ? "" : String(version);
}

/** What is counted for a version: of the two there may be, the one that decided. */
function versionOf({ inForce, before }: PolicyFigures, version: number | undefined): VersionFigures {
  return before !== undefined && before.version === version ? before : inForce;
}

function createPolicyFigures(policy: string, version: number | undefined): PolicyFigures {
  const figures: Omit<PolicyFigures, "otherWindow"> = {
    policy,
    domain: "",
    inForce: { version, allowed: 0, denied: 0 },
    before: undefined,
    costAllowed: 0,
    costDenied: 0,
    denials: {
      within_limits: 0,
      over_limit: 0,
      never_fits: 0,
      blocked: 0,
      deny_list: 0,
      missing_dimension: 0,
      unlimited: 0,
      degraded: 0,
    },
    durations: createBuckets(durationBounds),
    usedShares: createBuckets(shareBounds),
    degraded: {
      storage_unavailable: { allowed: 0, denied: 0 },
      storage_timeout: { allowed: 0, denied: 0 },
      process_starved: { allowed: 0, denied: 0 },
      storage_overloaded: { allowed: 0, denied: 0 },
      storage_full: { allowed: 0, denied: 0 },
      kill_switch: { allowed: 0, denied: 0 },
    },
    shadowDenials: 0,
    missing: new Map<string, number>(),
    windows: [],
  };
  const whole = figures as PolicyFigures;
  return Object.assign(figures, { otherWindow: createWindowFigures(whole, [policy, "", "other", ""]) });
}

function createWindowFigures(figures: PolicyFigures, labels: readonly string[]): WindowFigures {
  return { figures, labels, allowed: 0, denied: 0, used: 0, remaining: 0 };
}

function countWindow(window: WindowFigures, { allowed, used, limit }: Decision): void {
  if (allowed) window.allowed += 1;
  else window.denied += 1;
  if (used === undefined || limit === undefined) return;
  window.used = used;
  // Of this window alone: the decision's `remaining` is the least of all.
  window.remaining = Math.floor(limit) - used;
  // What holds nothing is full.
  observe(window.figures.usedShares, limit > 0 ? used / limit : 1);
}
