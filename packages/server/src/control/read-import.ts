import type { Problem } from "sluice";
import { readPolicyDocument } from "sluice/policy-text";
import { isNode, LineCounter, parseDocument } from "yaml";
import { invalidPolicies } from "./control-errors.ts";
import type { PolicyDocument } from "./control-plane.ts";
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
  const lines = new LineCounter();
  const yaml = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const placeAt = (offset: number): NonNullable<Problem["place"]> => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const syntax = yaml.errors.map(({ message, pos }): Problem => ({ path: [], message, place: placeAt(pos[0]) }));
  if (syntax.length > 0) throw invalidPolicies(syntax);
  const contents = readContents(yaml);
  const dialect = dialects.find(
    (key) => contents !== null && typeof contents === "object" && Object.hasOwn(contents, key),
  );
  if (dialect !== undefined)
    throw invalidPolicies([
      { path: [dialect], message: "is another format; write the policies in Sluice's own, under the key policies" },
    ]);
  const read = readPolicyDocument(contents);
  const problems = [...read.problems, ...findDoubles(read.ids), ...findClashes(contents)];
  if (problems.length > 0)
    throw invalidPolicies(problems.map((problem) => ({ ...problem, place: placeAt(offsetOf(problem)) })));

  /** Where the deepest part of a path stands that there is. */
  function offsetOf({ path }: Problem): number {
    for (let length = path.length; length > 0; length -= 1) {
      const node = yaml.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return node.range[0];
    }
    return 0;
  }

  const written = contents as Written;
  return {
    policies: new Map([
      ...(written.policies ?? []).map((policy) => [String(policy.id), inDomain(policy, written.domain)] as const),
      ...defaultOf(written.default),
    ]),
    subjects: read.subjects.map(({ value: entry, path }): ImportedSubject => {
      const raw = yaml.getIn(path, false) as { toJSON(): { limits?: readonly { windows?: unknown }[] } };
      const windows = raw.toJSON().limits ?? [];
      return {
        dimension: entry.dimension,
        value: entry.value,
        tier: entry.tier,
        limits: entry.limits.map(({ policy, limit = "", untilMs }, index) => {
          const own = windows[index]?.windows;
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
}

function readContents(yaml: ReturnType<typeof parseDocument>): unknown {
  try {
    return yaml.toJS({ maxAliasCount: 100 });
  } catch {
    throw invalidPolicies([{ path: [], message: "uses anchors too often" }]);
  }
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
