/**
 * Descriptors, the words in which Envoy asks its rate limit service: a domain, and lists of keys with values. Each domain
 * has a tree of them, whose limits are policies that are asked by name.
 */

/** One step of a descriptor: `{ key: "to_number", value: "5550100" }`. */
export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** Everything that is written for one domain. */
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
   * `shadow` never denies. `quota` does not deny by itself: a request with several such descriptors is denied when all of
   * them are over their limits. The policies of both are in shadow mode.
   */
  readonly mode: "enforce" | "shadow" | "quota";
  /** All values that a pattern fits share one counter, instead of having one each. */
  readonly shared: boolean;
  /** For descriptors that go on. */
  readonly children: readonly DescriptorNode[];
}

export interface DescriptorLimit {
  /** Id of the policy that has the windows. */
  readonly policy: string;
  readonly unlimited: boolean;
  readonly name?: string;
  /** Names of limits that do not apply to a request that this one applies to. */
  readonly replaces: readonly string[];
  /** Whether what is denied is charged all the same: for costs that are told when they have arisen already. */
  readonly chargeDenied: boolean;
  /** The policy's, for limits that a request brings along in place of it. */
  readonly onFailure: "open" | "closed" | "local";
}
