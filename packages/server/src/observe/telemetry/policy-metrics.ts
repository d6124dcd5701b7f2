import type { PolicySet } from "sluice";
import { counter, type Family, gauge, type Sample } from "./exposition.ts";

/** How policy files are applied, and how many policies there are. */
export class PolicyMetrics {
  readonly families: readonly Family[];
  readonly #nowMs: () => number;
  #domains: ReadonlyMap<string, number> = new Map();
  #owners: readonly Sample[] = [];
  #reloads = 0;
  #failures = 0;
  #inStep = true;
  #appliedMs: number;

  constructor({ generation, snapshot }: PolicyMetricsSources, nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
    this.#appliedMs = nowMs();
    this.families = this.#createFamilies(generation, snapshot);
  }

  countReload(successful: boolean): void {
    if (successful) this.#reloads += 1;
    else this.#failures += 1;
    this.#inStep = successful;
    if (successful) this.#appliedMs = this.#nowMs();
  }

  /** The policies in force have not been those on disk since the start. */
  startStale(): void {
    this.#inStep = false;
  }

  use({ policies }: Pick<PolicySet, "policies">): void {
    const domains = new Map<string, number>();
    for (const { match } of policies) domains.set(match.domain, (domains.get(match.domain) ?? 0) + 1);
    this.#domains = domains;
    this.#owners = policies
      .flatMap(({ id, owner }) => (owner === undefined ? [] : [{ labels: [id, owner], value: 1 }]))
      .slice(0, maxOwned);
  }

  #createFamilies(generation: () => number, snapshot: PolicyMetricsSources["snapshot"]): readonly Family[] {
    const families: Family[] = [
      gauge("sluice_config_generation", "Generation of the policies in force.", generation),
      counter("sluice_config_reloads_total", "Times the policies were replaced by changed ones.", () => this.#reloads),
      counter(
        "sluice_config_reload_failures_total",
        "Times changed policies were refused; the last good ones stay.",
        () => this.#failures,
      ),
      gauge(
        "sluice_config_last_reload_successful",
        "1 while the policies in force are those on disk, 0 while the ones on disk are refused.",
        () => Number(this.#inStep),
      ),
      gauge(
        "sluice_config_last_reload_success_timestamp_seconds",
        "When the policies in force were applied.",
        () => this.#appliedMs / 1_000,
      ),
      {
        name: "sluice_policies",
        help: "Policies in force, by domain.",
        type: "gauge",
        labels: ["domain"],
        samples: () => domainSamples(this.#domains),
      },
      {
        name: "sluice_policy_owner",
        help: "Whom to ask about a policy in force, for the policies that say so.",
        type: "gauge",
        labels: ["policy", "owner"],
        samples: () => this.#owners,
      },
      gauge("sluice_domains", "Domains that have policies.", () => this.#domains.size),
    ];
    if (snapshot !== undefined)
      families.push(
        gauge(
          "sluice_config_from_snapshot",
          "1 while the policies in force come from the snapshot on disk, because the policy files cannot be used.",
          () => Number(snapshot().inUse),
        ),
        gauge(
          "sluice_config_snapshot_timestamp_seconds",
          "When the snapshot on disk was written; 0 while there is none.",
          () => (snapshot().writtenMs ?? 0) / 1_000,
        ),
      );
    return families;
  }
}

export interface PolicyMetricsSources {
  readonly generation: () => number;
  /** The policies stored on disk. Absent if there are none. */
  readonly snapshot?: (() => { readonly inUse: boolean; readonly writtenMs: number | undefined }) | undefined;
}

/** The most policies whose owners are shown. */
const maxOwned = 500;

/** The most domains with a separate label, the first ones; the rest is summed up as `other`. */
const maxDomains = 100;

function* domainSamples(domains: ReadonlyMap<string, number>): Generator<Sample> {
  let left = maxDomains;
  let other = 0;
  for (const [domain, policies] of domains) {
    if (left > 0) yield { labels: [domain], value: policies };
    else other += policies;
    left -= 1;
  }
  if (other > 0) yield { labels: ["other"], value: other };
}
