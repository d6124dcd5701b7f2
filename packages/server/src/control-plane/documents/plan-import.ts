import { parsePolicyFiles, readPolicyDocument } from "sluice/policy-text";
import { invalidPolicies } from "../control-errors.ts";
import type { ImportPlan, PlannedPolicy } from "../control-plane.ts";
import type { PolicyDocument } from "../policy-control.ts";
import { diffDocuments } from "./diff-documents.ts";
import {
  countSubjects,
  demandOnce,
  hasNothing,
  type PlanSubjectSettings,
  planSubject,
  type StoredSubject,
  type SubjectName,
} from "./plan-subject.ts";
import { documentFromText, keptDocument, saysTheSame, withStoredOwner } from "./policy-documents.ts";
import { defaultPolicyId } from "./read-documents.ts";
import { filesInBody, findClashes, type ImportedConfiguration, joinParts, readPart } from "./read-import.ts";

/** What is stored, as far as a plan depends on it. */
export interface StoredConfiguration {
  readonly policies: readonly { readonly id: string; readonly version: number; readonly document: string }[];
  readonly rollouts: readonly {
    readonly id: string;
    readonly policy: string;
    readonly toVersion: number;
    readonly percent: number;
  }[];
  readonly subjects: ReadonlyMap<string, StoredSubject>;
}

export interface PlanRequest {
  /** The body of an import. */
  readonly body: string;
  readonly mode: "merge" | "replace";
  readonly stored: StoredConfiguration;
  readonly nowMs: number;
  readonly ipv6PrefixBits: number | undefined;
}

/** As many characters of documents and diffs are in a plan, so that its answer stays short. */
const maxShownLength = 2 * 1024 * 1024;

/**
 * What an import would do. Throws `invalid_policies` with every problem and its place in the files: what is wrong with one of them,
 * or with all of them together with the policies that stay.
 */
export function planImport({ body, mode, stored, nowMs, ipv6PrefixBits }: PlanRequest): Omit<ImportPlan, "generation"> {
  const kept = new Map(
    stored.policies.map(
      ({ id, version, document }) => [id, { version, document: documentFromText(document) }] as const,
    ),
  );
  const { imported, warnings } = readTogether(body, mode === "merge" ? kept : new Map());
  const rollouts = new Map(
    stored.rollouts.map(({ policy, id, toVersion, percent }) => [policy, { id, toVersion, percent }]),
  );
  return {
    policies: planPolicies(imported.policies, kept, mode).map((one) => ({ ...one, rollout: rollouts.get(one.policy) })),
    ...planSubjects(imported.subjects, stored.subjects, mode, { why: "", author: "", nowMs, ipv6PrefixBits }),
    warnings,
  };
}

type StoredDocuments = ReadonlyMap<string, { readonly version: number; readonly document: PolicyDocument }>;

/** Reads the files of a body next to the policies that stay. */
function readTogether(
  body: string,
  staying: StoredDocuments,
): { readonly imported: ImportedConfiguration } & Pick<ImportPlan, "warnings"> {
  const files = filesInBody(body);
  const parsed = parsePolicyFiles(files, {
    others({ ids, hasDefault }) {
      const policies = [...staying].filter(([id]) => id !== defaultPolicyId && !ids.has(id));
      const fallback = hasDefault ? undefined : staying.get(defaultPolicyId)?.document;
      return readPolicyDocument({
        policies: policies.map(([, { document }]) => document),
        ...(fallback !== undefined && { default: withoutId(fallback) }),
      });
    },
  });
  const parts = files.map((file, index) => readPart(parsed.documents[index], parsed.dialects[index]!, file));
  const clashes = parts.flatMap(({ written, file }) =>
    findClashes(written).map((one) => (file === undefined ? one : { ...one, place: { file, line: 1, column: 1 } })),
  );
  if (clashes.length > 0) throw invalidPolicies(clashes);
  return { imported: joinParts(parts), warnings: parsed.warnings };
}

function withoutId({ id: _, ...fields }: PolicyDocument): PolicyDocument {
  return fields;
}

/** In order of ids; deletions last. */
function planPolicies(
  imported: ImportedConfiguration["policies"],
  stored: StoredDocuments,
  mode: PlanRequest["mode"],
): readonly Omit<PlannedPolicy, "rollout">[] {
  let left = maxShownLength;
  const show = (
    before: PolicyDocument | undefined,
    after: PolicyDocument | undefined,
  ): Pick<PlannedPolicy, "document" | "diff"> => {
    if (left <= 0) return { document: undefined, diff: undefined };
    const { text: diff } = diffDocuments(before, orderedLike(before, after));
    left -= diff.length + (after === undefined ? 0 : JSON.stringify(after).length);
    return { document: after, diff };
  };
  const puts = [...imported].sort(byId).map(([policy, written]) => {
    const there = stored.get(policy);
    const document = withStoredOwner(keptDocument(policy, written), there?.document);
    const version = there?.version ?? 0;
    if (there !== undefined && saysTheSame(there.document, document))
      return { policy, action: "unchanged" as const, version, document: undefined, diff: undefined };
    const action = there === undefined ? ("create" as const) : ("change" as const);
    return { policy, action, version, ...show(there?.document, document) };
  });
  const gone = mode === "replace" ? [...stored].filter(([id]) => !imported.has(id)).sort(byId) : [];
  const deletions = gone.map(([policy, { version, document }]) => ({
    policy,
    action: "delete" as const,
    version,
    ...show(document, undefined),
  }));
  return [...puts, ...deletions];
}

function byId([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1;
}

/** Fields in the order in which they were, so that the diff shows what changed and no more. */
function orderedLike(
  before: PolicyDocument | undefined,
  after: PolicyDocument | undefined,
): PolicyDocument | undefined {
  if (before === undefined || after === undefined) return after;
  const keys = [...Object.keys(before).filter((key) => Object.hasOwn(after, key)), ...Object.keys(after)];
  return Object.fromEntries(
    [...new Set(keys)].map((key) => {
      const [old, young] = [before[key], after[key]];
      return [key, isObject(old) && isObject(young) ? orderedLike(old, young) : young];
    }),
  );
}

function isObject(value: unknown): value is PolicyDocument {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function planSubjects(
  imported: ImportedConfiguration["subjects"],
  stored: ReadonlyMap<string, StoredSubject>,
  mode: PlanRequest["mode"],
  settings: PlanSubjectSettings,
): Pick<ImportPlan, "subjects" | "subjectsInFiles"> {
  const named = new Set<string>();
  const planned = imported.map((subject, index) => {
    const one = planSubject(subject, index, stored, settings);
    demandOnce(one.target, index, named);
    return one;
  });
  const gone: SubjectName[] =
    mode === "replace"
      ? [...stored].filter(([target, { own }]) => !named.has(target) && !hasNothing(own)).map(([, one]) => one)
      : [];
  return {
    subjects: {
      created: countSubjects(planned.filter(({ action }) => action === "create")),
      changed: countSubjects(planned.filter(({ action }) => action === "change")),
      deleted: countSubjects(gone),
    },
    subjectsInFiles: imported.length,
  };
}
