/**
 * The format of Envoy's rate limit service: a `domain` and its tree of `descriptors`, each with a `key`, perhaps a
 * `value` and a `rate_limit`. Every limit becomes a policy that is asked for by name, and the tree says by which
 * descriptors.
 */
import { type Problem, renderPath } from "../errors.ts";
import { defaultPolicy } from "../policy/default-policy.ts";
import type { DescriptorLimit, DescriptorNode } from "../policy/descriptor.ts";
import { noValues } from "../policy/match-shape.ts";
import { renderDuration } from "../policy/parse-duration.ts";
import { defaultBurst, findMisfits, finishWindow } from "../policy/parse-window.ts";
import type { Limit, Policy, Window } from "../policy/policy.ts";
import { maxPolicies, type ReadPolicies, type Sited, sited } from "../policy/read-policy-document.ts";
import { listOf } from "../shape/list-shapes.ts";
import { objectOf } from "../shape/object-shapes.ts";
import { type Invalid, invalid, maxProblems, type Path, Reading } from "../shape/reading.ts";
import { type Shape, text } from "../shape/shape.ts";
import { hasMisspelt, suggest } from "../shape/suggest.ts";
import {
  type EnvoyDefaults,
  envoyBoolean,
  envoyDefaults,
  envoyLimitShape,
  type WrittenEnvoyLimit,
  whatever,
} from "./envoy-limit.ts";
import { envoyPolicyId } from "./envoy-policy-id.ts";
import { findRings } from "./find-rings.ts";

/** The source text of a plain value, if a path leads to one. */
export type SourceAt = (path: Path) => string | undefined;

/** More levels than any honest tree has. */
const maxLevels = 16;
const maxLimits = 16;

interface WrittenDescriptor extends EnvoyDefaults {
  readonly key: string;
  readonly value?: string;
  readonly rate_limit?: Sited<WrittenEnvoyLimit>;
  readonly rate_limits?: readonly Sited<WrittenEnvoyLimit>[];
  readonly descriptors?: readonly Sited<WrittenDescriptor>[];
  readonly shadow_mode?: boolean;
  readonly quota_mode?: boolean;
  readonly detailed_metric?: boolean;
  readonly value_to_metric?: boolean;
  readonly share_threshold?: boolean;
}

interface WrittenDomain extends EnvoyDefaults {
  readonly domain?: string;
  readonly descriptors?: readonly Sited<WrittenDescriptor>[];
}

function createDomainShape(sourceAt: SourceAt): Shape<WrittenDomain> {
  const name = (max: number): Shape<string> => plainText(text({ max }), sourceAt);
  const descriptor: Shape<WrittenDescriptor> = {
    name: "a descriptor, such as { key: user, rate_limit: … }",
    schema: {},
    read: (value, reading) => fields.read(withoutEmpty(value), reading) as WrittenDescriptor | Invalid,
  };
  const list = listOf(sited(descriptor), { max: maxPolicies });
  const limit = sited(envoyLimitShape);
  const nested: Shape<readonly Sited<WrittenDescriptor>[]> = {
    ...list,
    read: (value, reading) =>
      reading.path.length > 2 * maxLevels
        ? reading.problem(`are more than ${maxLevels} levels deep`)
        : list.read(value, reading),
  };
  const fields = objectOf(
    { key: name(1_024) },
    {
      value: name(4_096),
      rate_limit: limit,
      rate_limits: listOf(limit, { min: 1, max: maxLimits }),
      descriptors: nested,
      shadow_mode: envoyBoolean,
      quota_mode: envoyBoolean,
      detailed_metric: envoyBoolean,
      value_to_metric: envoyBoolean,
      share_threshold: envoyBoolean,
      metadata: whatever,
      ...envoyDefaults,
    },
  );
  const domain = objectOf({}, { domain: name(255), descriptors: list, metadata: whatever, ...envoyDefaults });
  return {
    ...domain,
    read(value, reading) {
      if (isObject(value) && !Object.hasOwn(value, "domain") && !hasMisspelt(value, "domain"))
        reading.problem("is missing; write the domain that Envoy asks with", "domain");
      return domain.read(withoutEmpty(value, ["domain"]), reading);
    },
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A key without a value counts as absent: `rate_limit:`, `descriptors:`, `value: ""`. */
function withoutEmpty(value: unknown, kept: readonly string[] = ["key"]): unknown {
  if (!isObject(value)) return value;
  const isEmpty = ([key, one]: [string, unknown]): boolean =>
    (one === null || (key === "value" && one === "")) && !kept.includes(key);
  return Object.values(value).some((one) => one === null || one === "")
    ? Object.fromEntries(Object.entries(value).filter((entry) => !isEmpty(entry)))
    : value;
}

/** Keys and values are texts, whatever they look like: `value: 404` is the text as written. */
function plainText(shape: Shape<string>, sourceAt: SourceAt): Shape<string> {
  return {
    ...shape,
    read(value, reading) {
      const plain = typeof value === "number" || typeof value === "boolean" || typeof value === "bigint";
      return shape.read(plain ? (sourceAt(reading.path) ?? String(value)) : value, reading);
    },
  };
}

export function readDescriptors(document: unknown, sourceAt: SourceAt): ReadPolicies {
  const reading = new Reading();
  const written = createDomainShape(sourceAt).read(document, reading);
  const nothing = { fallback: "absent", subjects: [], problems: reading.problems } as const;
  if (written === invalid) return { policies: [], ids: [], ...nothing };
  // Without a domain the rest is still read, for its problems.
  const { domain = "" } = written;
  const tree = new TreeReader(domain, reading);
  const descriptors = tree.readLevel(written.descriptors ?? [], [], pickDefaults(written));
  tree.checkReplaces();
  return {
    policies: tree.policies,
    ids: tree.policies.map((one) => ({ value: one.value.id, path: one.path })),
    ...(written.domain === undefined
      ? undefined
      : { descriptors: { value: { domain, descriptors }, path: ["domain"] } }),
    warnings: tree.warnings,
    ...nothing,
  };
}

/** Turns what was written into nodes and policies, once everything around it is known. */
class TreeReader {
  readonly policies: Sited<Policy>[] = [];
  readonly warnings: Problem[] = [];
  readonly #domain: string;
  readonly #reading: Reading;
  readonly #ids = new Set<string>();
  readonly #names = new Set<string>();
  readonly #replaces: Sited<string>[] = [];
  /** The same by the names of the limits that replace. */
  readonly #replacesByName = new Map<string, Sited<string>[]>();

  constructor(domain: string, reading: Reading) {
    this.#domain = domain;
    this.#reading = reading;
  }

  readLevel(
    written: readonly Sited<WrittenDescriptor>[],
    above: readonly WrittenDescriptor[],
    around: EnvoyDefaults,
  ): readonly DescriptorNode[] {
    const first = new Map<string, Path>();
    return written.map(({ value: one, path }) => {
      const { key, value } = one;
      const what = JSON.stringify([key, value]);
      const earlier = first.get(what);
      if (earlier === undefined) first.set(what, path);
      else {
        const text = value === undefined ? key : `${key} ${value}`;
        this.#reading.problem(`is ${text}, as is ${renderPath(earlier)}; write it once`, ...path);
      }
      return this.#readNode(one, path, [...above, one], { ...around, ...pickDefaults(one) });
    });
  }

  #readNode(
    written: WrittenDescriptor,
    path: Path,
    steps: readonly WrittenDescriptor[],
    around: EnvoyDefaults,
  ): DescriptorNode {
    const { key, value, rate_limit: only, rate_limits: several } = written;
    if (only !== undefined && several !== undefined)
      this.#reading.problem("cannot be combined with rate_limit; write one of the two", ...path, "rate_limits");
    if (written.share_threshold === true && !value?.includes("*"))
      this.#warn(
        [...path, "share_threshold"],
        "changes nothing: only a value with * in it has several values to share",
      );
    if (written.quota_mode === true && written.shadow_mode === true)
      this.#warn([...path, "quota_mode"], "changes nothing: in shadow_mode the limit never denies anyway");
    const limits: DescriptorLimit[] = [];
    const seen = new Map<string, Path>();
    for (const limit of several ?? (only === undefined ? [] : [only])) {
      const read = this.#readLimit(limit, written, steps, around, several !== undefined);
      if (read === invalid) continue;
      const earlier = seen.get(read.policy);
      if (earlier === undefined) seen.set(read.policy, limit.path);
      else this.#reading.problem(`lasts as long as ${renderPath(earlier)}; keep the stricter one`, ...limit.path);
      limits.push(read);
    }
    return {
      key,
      ...(value === undefined ? undefined : { value }),
      limits,
      mode: written.shadow_mode === true ? "shadow" : written.quota_mode === true ? "quota" : "enforce",
      shared: written.share_threshold === true && value?.includes("*") === true,
      children: this.readLevel(written.descriptors ?? [], steps, around),
    };
  }

  #readLimit(
    { value: written, path }: Sited<WrittenEnvoyLimit>,
    descriptor: WrittenDescriptor,
    steps: readonly WrittenDescriptor[],
    around: EnvoyDefaults,
    oneOfSeveral: boolean,
  ): DescriptorLimit | Invalid {
    const { name, replaces = [], unlimited = false } = written;
    for (const [index, one] of replaces.entries()) {
      const at = [...path, "replaces", index, "name"];
      if (one.name === name) this.#reading.problem("is the limit itself; name the ones it replaces", ...at);
      else this.#noteReplaces(name, { value: one.name, path: at });
    }
    if (name !== undefined) this.#names.add(name);
    const settings = { ...around, ...pickDefaults(written) };
    const window = unlimited
      ? this.#checkUnlimited(written, path, oneOfSeveral)
      : this.#readWindow(written, path, settings);
    if (window === invalid) return invalid;
    const length = oneOfSeveral && window !== undefined ? renderLength(window) : undefined;
    const id = envoyPolicyId(this.#domain, steps, length);
    const policy: Policy = {
      ...defaultPolicy,
      id,
      ...(name === undefined ? undefined : { description: name }),
      match: { domain: this.#domain, methods: [], dimensions: noValues, named: true },
      limits: window === undefined ? [] : [createLimit(window, settings)],
      unlimited,
      mode: descriptor.shadow_mode === true || descriptor.quota_mode === true ? "shadow" : "enforce",
      onFailure: settings.on_failure ?? "open",
      onFailureChosen: settings.on_failure !== undefined,
    };
    // A duplicate descriptor or limit has been reported.
    if (!this.#ids.has(id)) this.policies.push({ value: policy, path });
    this.#ids.add(id);
    return {
      policy: id,
      unlimited,
      ...(name === undefined ? undefined : { name }),
      replaces: replaces.map((one) => one.name),
      chargeDenied: settings.charge_denied ?? false,
      onFailure: policy.onFailure,
    };
  }

  #checkUnlimited(written: WrittenEnvoyLimit, path: Path, oneOfSeveral: boolean): undefined {
    for (const key of ["unit", "per", "burst"] as const)
      if (written[key] !== undefined)
        this.#reading.problem("goes with a limit, and this is unlimited; leave out one of the two", ...path, key);
    if (oneOfSeveral) this.#reading.problem("is not a limit; leave it out, or write rate_limit", ...path, "unlimited");
    return undefined;
  }

  /**
   * Epoch-aligned windows unless another algorithm is written, which is what files of this format have always meant.
   */
  #readWindow(written: WrittenEnvoyLimit, path: Path, { algorithm = "fixed_window" }: EnvoyDefaults): Window | Invalid {
    const { unit, per, requests_per_unit: limit, burst } = written;
    const length = per ?? unit;
    // A missing field was reported when the limit was read.
    if (length === undefined || limit === undefined) return invalid;
    if (unit !== undefined && per !== undefined)
      return this.#reading.problem("cannot be combined with unit; write one of the two", ...path, "per");
    const reading = new Reading(path);
    // Plain counts have no rate that would be too fast for them.
    const plain = algorithm === "fixed_window" && burst === undefined && length.kind === "ms";
    const window = plain
      ? { limit, per: length, burst: defaultBurst(limit) }
      : finishWindow({ limit, per: length, ...(burst === undefined ? undefined : { burst }) }, reading, fieldNames);
    for (const { field, message } of window === invalid ? [] : findMisfits(window, { algorithm }))
      reading.problem(message, field === "limit" ? fieldNames.limit : field);
    for (const problem of reading.problems) this.#reading.problem(problem.message, ...problem.path);
    return reading.problems.length > 0 ? invalid : window;
  }

  #noteReplaces(name: string | undefined, replaced: Sited<string>): void {
    this.#replaces.push(replaced);
    if (name === undefined) return;
    const others = this.#replacesByName.get(name);
    if (others === undefined) this.#replacesByName.set(name, [replaced]);
    else others.push(replaced);
  }

  /** Reports names that no limit has, and limits that replace each other in a ring. */
  checkReplaces(): void {
    for (const { names, closing } of findRings(this.#replacesByName)) {
      const shown = names.length > 5 ? [...names.slice(0, 5), "…"] : names;
      const ring = [...shown, names[0]].join(" replaces ");
      this.#warn(closing.path, `closes a ring: ${ring}; a request with all of them is not limited by any`);
    }
    for (const { value, path } of this.#replaces) {
      if (this.#names.has(value)) continue;
      const meant = this.#names.size > 1_000 ? undefined : suggest(value, this.#names);
      const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
      this.#warn(path, `is ${value}, but no limit of the domain has that name${hint}`);
    }
  }

  #warn(path: Path, message: string): void {
    if (this.warnings.length < maxProblems) this.warnings.push({ path, message });
  }
}

const fieldNames = { limit: "requests_per_unit", burst: "burst" };

function pickDefaults({ algorithm, on_failure, charge_denied }: EnvoyDefaults): EnvoyDefaults {
  return {
    ...(algorithm === undefined ? undefined : { algorithm }),
    ...(on_failure === undefined ? undefined : { on_failure }),
    ...(charge_denied === undefined ? undefined : { charge_denied }),
  };
}

/** `15m`, `day in Europe/Berlin`, `once`: distinguishes the limits of one descriptor. */
function renderLength({ per }: Window): string {
  if (per.kind === "ms") return renderDuration(per.ms);
  return per.kind === "never" ? "once" : `${per.unit}.${per.timeZone}`;
}

function createLimit(window: Window, { algorithm = "fixed_window" }: EnvoyDefaults): Limit {
  return { ...defaultPolicy.limits[0]!, by: ["descriptor"], algorithm, windows: [window] };
}
