import { createHash, createHmac, randomBytes } from "node:crypto";
import type { Policy, PolicySet } from "sluice";
import { canonicalValue, defaultIpv6PrefixBits, redactText } from "sluice/internal";
import { isSecretName } from "../telemetry/secret-names.ts";

/** Subjects whose place in the sample and whose hash are remembered; beyond that all are forgotten. */
const mostRemembered = 65_536;
/** Names of dimensions that are remembered as secret or not. */
const mostNames = 1_024;

export interface HiddenValuesOptions {
  /** The part of the subjects that is recorded. */
  readonly share: number;
  /** The dimension that names them. */
  readonly shareBy: string | undefined;
  /** Dimensions whose values are replaced by a hash. */
  readonly hashed: readonly string[];
  readonly ipv6PrefixBits?: number | undefined;
}

/**
 * Which subjects are recorded, and what is recorded of values. Both go by a random key, which is never
 * written and gone when the recording ends: so a sample cannot be foreseen, and a hash cannot be guessed backwards.
 */
export class HiddenValues {
  readonly #options: HiddenValuesOptions;
  readonly #key: Buffer = randomBytes(32);
  readonly #hashed: ReadonlySet<string>;
  readonly #isIn: Map<string, boolean> = new Map();
  readonly #hashes: Map<string, string> = new Map();
  readonly #secrets: Map<string, boolean> = new Map();

  constructor(options: HiddenValuesOptions) {
    this.#options = options;
    this.#hashed = new Set(options.hashed);
  }

  /** Whether the subject of a request is recorded, with all of its requests. A request without the dimension is of the subject "". */
  isRecorded(dimensions: Readonly<Record<string, string>>): boolean {
    const { share, shareBy, ipv6PrefixBits } = this.#options;
    if (share >= 1 || shareBy === undefined) return true;
    const subject = canonicalValue(shareBy, dimensions[shareBy] ?? "", ipv6PrefixBits);
    const known = this.#isIn.get(subject);
    if (known !== undefined) return known;
    const isIn = this.#digest("share", subject).readUIntBE(0, 6) < share * 2 ** 48;
    remember(this.#isIn, subject, isIn);
    return isIn;
  }

  /** The values as they are written: hashed where that was asked, and of secrets a digest, as in records of denials. */
  show(dimensions: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const shown: Record<string, string> = {};
    for (const name of Object.keys(dimensions)) {
      const value = dimensions[name]!;
      shown[name] = name === "endpoint" && !this.#hashed.has(name) ? redactText(value) : this.#showValue(name, value);
    }
    return shown;
  }

  /** Policies in which lists, matches and subjects have the values that requests are written with. */
  showPolicies(set: PolicySet): PolicySet {
    const { fallback } = set;
    return {
      ...set,
      policies: set.policies.map((policy) => this.#showPolicy(policy)),
      ...(fallback !== undefined && { fallback: this.#showPolicy(fallback) }),
      subjects: set.subjects.map((one) => ({ ...one, value: this.#showValue(one.dimension, one.value) })),
    };
  }

  #showPolicy(policy: Policy): Policy {
    const { match, allow, deny } = policy;
    return {
      ...policy,
      match: { ...match, dimensions: this.#showLists(match.dimensions) },
      allow: this.#showLists(allow),
      deny: this.#showLists(deny),
    };
  }

  #showLists(lists: Policy["allow"]): Policy["allow"] {
    const shown = Object.entries(lists).map(([name, values]) => [
      name,
      values.map((value) => (value === "*" ? value : this.#showValue(name, value))),
    ]);
    return Object.fromEntries(shown);
  }

  #showValue(name: string, value: string): string {
    if (this.#hashed.has(name)) return this.#hash(name, value);
    return this.#isSecret(name) ? digestSecret(value) : value;
  }

  #hash(name: string, value: string): string {
    // All spellings of a value have one hash, because they have one counter.
    const subject = canonicalValue(name, value, this.#options.ipv6PrefixBits);
    const key = `${name}\n${subject}`;
    const known = this.#hashes.get(key);
    if (known !== undefined) return known;
    const digest = this.#digest(name, subject);
    const hash = name === "ip" ? this.#renderIp(digest) : digest.toString("hex", 0, 12);
    remember(this.#hashes, key, hash);
    return hash;
  }

  /** Limits by `ip` take addresses only. One of the private network fd00::/8 stands for each subject. */
  #renderIp(digest: Buffer): string {
    const bits = this.#options.ipv6PrefixBits ?? defaultIpv6PrefixBits;
    const bytes = Buffer.alloc(16);
    bytes[0] = 0xfd;
    // Within the part that distinguishes subjects, as far as that has room.
    digest.copy(bytes, 1, 0, Math.max(1, Math.min(15, Math.floor(bits / 8) - 1)));
    return Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16)).join(":");
  }

  #isSecret(name: string): boolean {
    let isSecret = this.#secrets.get(name);
    if (isSecret === undefined) {
      isSecret = isSecretName(name);
      if (this.#secrets.size < mostNames) this.#secrets.set(name, isSecret);
    }
    return isSecret;
  }

  #digest(purpose: string, value: string): Buffer {
    return createHmac("sha256", this.#key).update(purpose).update("\0").update(value).digest();
  }
}

function digestSecret(value: string): string {
  return `sha256:${createHash("sha256").update(value).digest("hex").slice(0, 16)}`;
}

function remember<T>(values: Map<string, T>, key: string, value: T): void {
  if (values.size >= mostRemembered) values.clear();
  values.set(key, value);
}
