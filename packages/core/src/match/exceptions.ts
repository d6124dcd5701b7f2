import type { BlockedSubject, DisabledPolicy, PolicySet } from "../policy/policy.ts";
import { rawDimension, readDimension } from "../request/read-dimension.ts";
import { canonicalValue } from "../subject/canonical-value.ts";
import { ipSubject } from "../subject/ip-address.ts";

type Dimensions = Readonly<Record<string, string>>;

/**
 * What operators decided for a while, besides the policies: policies that are disabled, and subjects that are blocked.
 * Each ends by the clock, without any message.
 */
export class Exceptions {
  readonly #disabled: ReadonlyMap<string, DisabledPolicy>;
  readonly #blocks = new Map<string, Map<string, BlockedSubject>>();
  readonly #ipv6PrefixBits: number;

  constructor({ disabled = [], blocks = [] }: Pick<PolicySet, "disabled" | "blocks">, ipv6PrefixBits: number) {
    this.#ipv6PrefixBits = ipv6PrefixBits;
    this.#disabled = new Map(disabled.map((one) => [one.policy, one]));
    for (const block of blocks) {
      const { dimension } = block;
      const value = canonicalValue(dimension, block.value, ipv6PrefixBits);
      const byValue = this.#blocks.get(dimension) ?? new Map<string, BlockedSubject>();
      this.#blocks.set(dimension, byValue.set(value, { ...block, value }));
    }
  }

  /** How a policy is disabled now; undefined if it is not. */
  disabled(policy: string, epochMs: () => number): DisabledPolicy | undefined {
    if (this.#disabled.size === 0) return undefined;
    const found = this.#disabled.get(policy);
    return found !== undefined && epochMs() < found.untilMs ? found : undefined;
  }

  /** The blocks that a request meets now, the one that ends last first. */
  blocks(dimensions: Dimensions, epochMs: () => number): readonly BlockedSubject[] {
    if (this.#blocks.size === 0) return noBlocks;
    let found = noBlocks;
    for (const [dimension, byValue] of this.#blocks) {
      const block = byValue.get(this.#read(dimensions, dimension));
      // The clock is asked only about a subject that is blocked.
      if (block !== undefined && epochMs() < block.untilMs) found = [...found, block];
    }
    return found.length < 2 ? found : found.toSorted((one, other) => other.untilMs - one.untilMs);
  }

  /** A value that cannot be read is that of no blocked subject. */
  #read(dimensions: Dimensions, name: string): string {
    if (name === "ip") return ipSubject(rawDimension(dimensions, name), this.#ipv6PrefixBits) ?? "";
    return readDimension(dimensions, name, this.#ipv6PrefixBits);
  }
}

const noBlocks: readonly BlockedSubject[] = [];
