import type { PolicySet } from "../policy/policy.ts";
import { normalizeEndpoint, otherReadings } from "../subject/endpoint-path.ts";
import { compilePolicy, shareReach } from "./compile-policy.ts";
import type { Candidates, CompiledPolicy } from "./compiled-policy.ts";
import { EndpointTrie } from "./endpoint-trie.ts";
import { Exceptions } from "./exceptions.ts";
import { MemorySubjectDirectory, type SubjectDirectory } from "./subject-directory.ts";

/** Policies whose domain and endpoint match, still to be narrowed by their other conditions. */
export interface PolicyBucket {
  readonly policies: CompiledPolicy[];
  /** Policies that require particular values of a dimension, found by the value. */
  readonly byValue: Map<string, Map<string, CompiledPolicy[]>>;
  /** Policies that only require a dimension to be present. */
  readonly byPresence: Map<string, CompiledPolicy[]>;
}

export interface FoundBucket {
  readonly bucket: PolicyBucket;
  /** The readings that lead there, the normal form first if it is one of them. */
  readonly paths: readonly string[];
  /**
   * False if only some readings of the endpoint lead there. Servers read an encoded slash or a dot segment differently,
   * so the limits of every reading hold, but only those exemptions that all of them agree on.
   */
  readonly certain: boolean;
}

/** The match of an endpoint. */
export interface EndpointMatch {
  /** The endpoint in its normal form; undefined if the request has none. */
  readonly path: string | undefined;
  /** Every way in which some server would read it, this one first; `/` if the request has none. */
  readonly readings: readonly string[];
  readonly found: readonly FoundBucket[];
  /** Whether the method alone still decides which of them apply. */
  readonly settled: boolean;
  /** If so: the policies that apply, by method, filled as they are asked for. */
  readonly byMethod: Map<string, Candidates>;
  /** Costs of this endpoint, by policy, filled as they are asked for. */
  readonly costs: Map<CompiledPolicy, number>;
}

/** All policies at one generation, compiled: immutable, and read by every check. */
export class Snapshot {
  readonly generation: number;
  readonly policySet: PolicySet;
  readonly subjects: SubjectDirectory;
  readonly fallback: CompiledPolicy | undefined;
  /** Undefined if no policy is disabled and no subject is blocked. */
  readonly exceptions: Exceptions | undefined;
  /** Whether two versions of any policy are in force. */
  readonly hasTrials: boolean;
  /** How many bits of an IPv6 address tell subjects apart. */
  readonly ipv6PrefixBits: number;
  readonly #byId = new Map<string, readonly CompiledPolicy[]>();
  readonly #domains = new Map<string, DomainIndex>();
  /** The domain of nearly every request, kept apart to save the lookup. */
  readonly #defaultDomain = new DomainIndex();
  /** Stands for every domain without policies. */
  readonly #emptyDomain = new DomainIndex();

  constructor(policySet: PolicySet, generation: number, ipv6PrefixBits: number) {
    this.generation = generation;
    this.ipv6PrefixBits = ipv6PrefixBits;
    this.policySet = policySet;
    this.subjects = new MemorySubjectDirectory(policySet.subjects, ipv6PrefixBits);
    this.fallback = policySet.fallback === undefined ? undefined : compilePolicy(policySet.fallback);
    this.#domains.set("default", this.#defaultDomain);
    for (const policy of policySet.policies) {
      this.#byId.set(policy.id, [...(this.#byId.get(policy.id) ?? []), compilePolicy(policy)]);
    }
    for (const [id, versions] of this.#byId) {
      const shared = shareReach(versions);
      this.#byId.set(id, shared);
      for (const compiled of shared) this.#index(compiled);
    }
    const { disabled = [], blocks = [] } = policySet;
    const hasAny = disabled.length + blocks.length > 0;
    this.exceptions = hasAny ? new Exceptions(policySet, ipv6PrefixBits) : undefined;
    this.hasTrials = policySet.policies.some(({ trial }) => trial !== undefined);
  }

  #index(compiled: CompiledPolicy): void {
    const { match } = compiled.policy;
    if (match.named === true) return;
    let domain = this.#domains.get(match.domain);
    if (domain === undefined) {
      domain = new DomainIndex();
      this.#domains.set(match.domain, domain);
    }
    domain.add(compiled);
  }

  /** One policy, or both of its versions while two are in force. Empty if there is none. */
  findPolicy(id: string): readonly CompiledPolicy[] {
    return this.#byId.get(id) ?? (this.fallback?.policy.id === id ? [this.fallback] : []);
  }

  /** Every policy, each version of it, and the fallback last. */
  *allPolicies(): IterableIterator<CompiledPolicy> {
    for (const versions of this.#byId.values()) yield* versions;
    if (this.fallback !== undefined) yield this.fallback;
  }

  /** The match of an endpoint; "" if the request has none. Without a domain: in `default`. */
  matchEndpoint(domain: string | undefined, endpoint: string): EndpointMatch {
    if (domain === undefined) return this.#defaultDomain.match(endpoint);
    return (this.#domains.get(domain) ?? this.#emptyDomain).match(endpoint);
  }
}

/** Longer endpoints are not remembered, nor those with many readings, so a client cannot fill the memory with them. */
const maxRememberedLength = 256;
const maxRememberedReadings = 8;
const maxRemembered = 4096;

class DomainIndex {
  readonly #anyEndpoint: PolicyBucket = createBucket();
  readonly #endpoints = new EndpointTrie<PolicyBucket>();
  /** Matches of recent endpoints in two generations: when one is full, the older is forgotten. */
  #recent = new Map<string, EndpointMatch>();
  #older = new Map<string, EndpointMatch>();
  #withoutEndpoint: EndpointMatch | undefined;

  add(policy: CompiledPolicy): void {
    const { endpoint } = policy.policy.match;
    const bucket = endpoint === undefined ? this.#anyEndpoint : this.#endpoints.at(endpoint, createBucket);
    const listed = policy.conditions.find(({ list }) => list?.kind === "texts")?.list;
    if (listed?.kind !== "texts") {
      const present = policy.conditions.find(({ list }) => list === undefined);
      if (present === undefined) bucket.policies.push(policy);
      else pushTo(bucket.byPresence, present.dimension, policy);
      return;
    }
    let byValue = bucket.byValue.get(listed.dimension);
    if (byValue === undefined) {
      byValue = new Map();
      bucket.byValue.set(listed.dimension, byValue);
    }
    for (const value of listed.texts) pushTo(byValue, value, policy);
  }

  match(endpoint: string): EndpointMatch {
    if (endpoint === "") {
      this.#withoutEndpoint ??= createMatch(
        undefined,
        ["/"],
        [{ bucket: this.#anyEndpoint, paths: ["/"], certain: true }],
      );
      return this.#withoutEndpoint;
    }
    const recent = this.#recent.get(endpoint);
    if (recent !== undefined) return recent;
    const match = this.#older.get(endpoint) ?? this.#find(endpoint);
    if (endpoint.length <= maxRememberedLength && match.readings.length <= maxRememberedReadings) {
      if (this.#recent.size >= maxRemembered) {
        this.#older = this.#recent;
        this.#recent = new Map();
      }
      this.#recent.set(endpoint, match);
    }
    return match;
  }

  #find(endpoint: string): EndpointMatch {
    const path = normalizeEndpoint(endpoint);
    const readings = [path, ...otherReadings(endpoint)];
    const pathsTo = new Map<PolicyBucket, string[]>();
    for (const reading of readings) {
      for (const bucket of this.#endpoints.find(reading)) {
        const paths = pathsTo.get(bucket);
        if (paths === undefined) pathsTo.set(bucket, [reading]);
        else paths.push(reading);
      }
    }
    const found: FoundBucket[] = [];
    for (const [bucket, paths] of pathsTo) found.push({ bucket, paths, certain: paths.length === readings.length });
    found.push({ bucket: this.#anyEndpoint, paths: readings, certain: true });
    return createMatch(path, readings, found);
  }
}

function createMatch(
  path: string | undefined,
  readings: readonly string[],
  found: readonly FoundBucket[],
): EndpointMatch {
  const settled = found.every(
    ({ bucket }) =>
      bucket.byValue.size === 0 &&
      bucket.byPresence.size === 0 &&
      bucket.policies.every(
        ({ conditions, policy }) =>
          conditions.length === 0 &&
          policy.validFromMs === undefined &&
          policy.rollout === undefined &&
          policy.trial === undefined,
      ),
  );
  return { path, readings, found, settled, byMethod: new Map(), costs: new Map() };
}

function createBucket(): PolicyBucket {
  return { policies: [], byValue: new Map(), byPresence: new Map() };
}

function pushTo<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
