/**
 * Descriptors, the terms in which Envoy asks its rate limit service: a domain, and lists of keys with values. Each
 * domain has a tree of them, whose limits are policies that are asked for by name.
 */

/** One step of a descriptor: `{ key: "to_number", value: "5550100" }`. */
export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** Everything written for one domain. */
export interface DescriptorDomain {
  readonly domain: string;
  readonly descriptors: readonly DescriptorNode[];
}

export interface DescriptorNode {
  readonly key: string;
  /** Absent: any value that no sibling names. Each `*` in it stands for any text. */
  readonly value?: string;
  /** For descriptors that end here. Empty: they have no limit. */
  readonly limits: readonly DescriptorLimit[];
  /**
   * `shadow` never denies. `quota` does not deny on its own: a request with several such descriptors is denied if all
   * of them are over their limits. The policies of both are in shadow mode.
   */
  readonly mode: "enforce" | "shadow" | "quota";
  /** All values that match a pattern share one counter, instead of having one each. */
  readonly shared: boolean;
  /** For descriptors that continue. */
  readonly children: readonly DescriptorNode[];
}

export interface DescriptorLimit {
  /** Id of the policy that has the windows. */
  readonly policy: string;
  readonly unlimited: boolean;
  readonly name?: string;
  /** Names of limits that do not apply to a request that this one applies to. */
  readonly replaces: readonly string[];
  /** Whether a denied cost is charged all the same: for costs reported after they have arisen. */
  readonly chargeDenied: boolean;
  /** The policy's fail mode, for limits that a request brings along in its place. */
  readonly onFailure: "open" | "closed" | "local";
}
