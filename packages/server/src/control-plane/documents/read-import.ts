import type { Problem } from "sluice";
import { parseYamlDocument, readPolicyDocument } from "sluice/policy-text";
import { invalidPolicies } from "../control-errors.ts";
import type { PolicyDocument } from "../control-plane.ts";
import { defaultPolicyId } from "./read-documents.ts";

/** What a policy file says, as documents. */
export interface ImportedConfiguration {
  readonly policies: ReadonlyMap<string, PolicyDocument>;
  /** The file's own words: `{ user: u1, tier: …, limits: […] }`. */
  readonly subjects: readonly ImportedSubject[];
}

export interface ImportedSubject {
  readonly dimension: string;
  readonly value: string;
  readonly tier: string | undefined;
  readonly limits: readonly {
    readonly policy: string;
    readonly limit: string;
    /** JSON. */
    readonly windows: string;
    readonly untilMs: number | undefined;
  }[];
}

/**
 * Reads a policy file in Sluice's own format, one policy for itself: what they refer to is looked at where all are known. Throws
 * `invalid_policies` with every problem and its place.
 */
export function readImport(text: string): ImportedConfiguration {
  const { contents, problems: syntax, withPlace } = parseYamlDocument(text, undefined);
  if (syntax.length > 0) throw invalidPolicies(syntax);
  const dialect = dialects.find(
    (key) => contents !== null && typeof contents === "object" && Object.hasOwn(contents, key),
  );
  if (dialect !== undefined)
    throw invalidPolicies([
      { path: [dialect], message: "is another format; write the policies in Sluice's own, under the key policies" },
    ]);
  const read = readPolicyDocument(contents);
  const problems = [...read.problems, ...findDoubles(read.ids), ...findClashes(contents)];
  if (problems.length > 0) throw invalidPolicies(problems.map((one) => withPlace(one)));

  const written = contents as Written;
  return {
    policies: new Map([
      ...(written.policies ?? []).map((policy) => [String(policy.id), inDomain(policy, written.domain)] as const),
      ...defaultOf(written.default),
    ]),
    subjects: read.subjects.map(({ value: entry, path: [, index] }): ImportedSubject => {
      const windows = written.subjects?.[index as number]?.limits ?? [];
      return {
        dimension: entry.dimension,
        value: entry.value,
        tier: entry.tier,
        limits: entry.limits.map(({ policy, limit = "", untilMs }, at) => {
          const own = windows[at]?.windows;
          return { policy, limit, windows: JSON.stringify(Array.isArray(own) ? own : [own]), untilMs };
        }),
      };
    }),
  };
}

const dialects = ["domains", "rate_limits", "descriptors"];

interface Written {
  readonly domain?: string;
  readonly policies?: readonly PolicyDocument[];
  readonly default?: PolicyDocument | string;
  readonly subjects?: readonly { readonly limits?: readonly { readonly windows?: unknown }[] }[];
}

function findDoubles(ids: readonly { readonly value: string; readonly path: Problem["path"] }[]): readonly Problem[] {
  const seen = new Set<string>();
  return ids.flatMap(({ value, path }) => {
    const isDouble = seen.has(value);
    seen.add(value);
    return isDouble
      ? [{ path, message: `is ${value}, as is that of another policy; every policy has its own id` }]
      : [];
  });
}

/** In the store, the default policy is the one with this id. */
function findClashes(contents: unknown): readonly Problem[] {
  const { policies } = (contents ?? {}) as { readonly policies?: unknown };
  if (!Array.isArray(policies)) return [];
  const index = policies.findIndex((policy: { readonly id?: unknown } | null) => policy?.id === defaultPolicyId);
  const message = `is ${defaultPolicyId}, which is the id of the policy under default; choose another`;
  return index < 0 ? [] : [{ path: ["policies", index, "id"], message }];
}

/** Each policy stands for itself in the store, and so names the domain that was written for all. */
function inDomain(policy: PolicyDocument, domain: string | undefined): PolicyDocument {
  const own = policy.domain ?? (policy.match as { readonly domain?: unknown } | undefined)?.domain;
  return domain === undefined || domain === "default" || own !== undefined ? policy : { ...policy, domain };
}

function defaultOf(written: PolicyDocument | string | undefined): readonly (readonly [string, PolicyDocument])[] {
  if (written === undefined) return [];
  return [[defaultPolicyId, typeof written === "string" ? { unlimited: true } : written]];
}
