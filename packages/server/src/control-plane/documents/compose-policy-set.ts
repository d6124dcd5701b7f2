import type { SubjectLimitRecord } from "@sluice/sql";
import type { Policy, PolicySet, Problem, SubjectEntry } from "sluice";
import { defaultPolicy, type SubjectLimit, type Trial } from "sluice/internal";
import { assemblePolicies, type PolicyPart, type Sited } from "sluice/policy-text";
import { createYield } from "../create-yield.ts";
import { byPrecedence } from "./by-precedence.ts";
import { createDocumentReader, type DocumentReader, defaultPolicyId, type ReadDocument } from "./read-documents.ts";
import { currentPercent, isOnTrial, type StoredRows } from "./stored-rows.ts";
import { isOver } from "./write-subject.ts";

export interface ComposeOptions {
  /** Policies from files, which stored ones may refer to. They are not part of the result. */
  readonly files?: PolicySet | undefined;
  /** A reader that is kept from generation to generation reads only changes. */
  readonly reader?: DocumentReader | undefined;
}

export interface ComposedPolicies {
  readonly policySet: PolicySet;
  /** Whether a default policy is stored; otherwise the set has the built-in one. */
  readonly hasDefault: boolean;
  /**
   * Problems that cause something to be left out: it cannot be read, or refers to something that does not exist. Paths:
   * `["policies", ID, …]`, `["default", …]`, `["subjects", DIMENSION, VALUE, …]`.
   */
  readonly problems: readonly Problem[];
}

/**
 * Makes policies of rows. A problem with one policy or subject does not affect the others: a policy that cannot be read
 * is left out, a dangling reference is ignored, and both are reported.
 */
export function composePolicySet(rows: StoredRows, nowMs: number, options: ComposeOptions = {}): ComposedPolicies {
  const steps = composeInSteps(rows, nowMs, options);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The same, yielding to decisions between its steps. */
export async function composeInTurns(
  rows: StoredRows,
  nowMs: number,
  options: ComposeOptions = {},
): Promise<ComposedPolicies> {
  const steps = composeInSteps(rows, nowMs, options);
  const yieldIfDue = createYield();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await yieldIfDue();
  }
}

function* composeInSteps(
  rows: StoredRows,
  nowMs: number,
  options: ComposeOptions,
): Generator<undefined, ComposedPolicies, undefined> {
  const { files, reader = createDocumentReader() } = options;
  const problems = createProblems();
  const underway = new Map(rows.underway.map((one) => [one.rollout.policy, one]));
  const ids = rows.policies.map(({ id }) => id);
  const now = new Map<string, Policy>();
  const next = new Map<string, Policy>();
  let fallback: Policy | "none" | "absent" = "absent";

  for (const [index, { id, document, version }] of rows.policies.entries()) {
    if (index % policiesOfAStep === 0) yield;
    const read = usePolicy(id, reader.policy(id, document), version);
    if (id === defaultPolicyId) fallback = read ?? "absent";
    else if (read !== undefined && read !== "none" && !isNew(id)) now.set(id, read);
  }
  for (const [id, { version }] of underway) {
    const read = usePolicy(id, reader.policy(id, version.document), version.version);
    if (read !== undefined && read !== "none") next.set(id, read);
  }
  const written = composeSubjects(rows, nowMs, reader, problems);
  yield;
  const known = { ids, fallback, files };
  const current = withoutLooseEnds([...now.values()], written, known, problems);
  yield;
  const later =
    next.size === 0 ? current : withoutLooseEnds([...new Map([...now, ...next]).values()], written, known, problems);

  function isNew(id: string): boolean {
    return underway.get(id)?.rollout.fromVersion === 0;
  }

  function usePolicy(
    id: string,
    { policy, problems: found }: ReadDocument,
    version: number,
  ): Policy | "none" | undefined {
    for (const { path, message } of found) problems.add([...policyPath(id), ...path], message);
    return policy === undefined || policy === "none" ? policy : withVersion(policy, version);
  }

  /** A policy as it is in force, with both versions during a rollout. */
  function inForce(id: string): readonly Policy[] {
    const old = current.byId.get(id);
    const trial = underway.get(id);
    const candidate = trial !== undefined && isOnTrial(trial.rollout) && next.has(id) ? later.byId.get(id) : undefined;
    if (trial === undefined || candidate === undefined) return old === undefined ? [] : [old];
    const { rollout } = trial;
    const shared: Omit<Trial, "side"> = {
      rollout: rollout.id,
      by: rollout.by,
      percent: currentPercent(rollout),
      steps: rollout.steps.map(({ percent }) => percent),
      shadow: rollout.shadow,
    };
    return [
      ...(old === undefined ? [] : [{ ...old, trial: { ...shared, side: "old" as const } }]),
      { ...candidate, trial: { ...shared, side: "new" as const } },
    ];
  }

  yield;
  const policies = ids.flatMap(inForce);
  reader.sweep();
  const stored = fallback === "absent" ? defaultPolicy : fallback;
  return {
    policySet: {
      kind: "policy_set",
      policies,
      ...(stored === "none" ? undefined : { fallback: stored }),
      subjects: current.subjects,
      ...composeExceptions(rows, nowMs),
    },
    hasDefault: fallback !== "absent",
    problems: problems.list,
  };
}

/** What has not ended of what operators decided for a while. */
function composeExceptions({ disabled = [], blocks = [] }: StoredRows, nowMs: number): PolicySetExceptions {
  const off = disabled
    .filter(({ untilMs }) => nowMs < untilMs)
    .map(({ policy, mode, untilMs, reason }) => ({ policy, mode, untilMs, reason }));
  const blocked = blocks
    .filter(({ untilMs }) => nowMs < untilMs)
    .map(({ dimension, value, untilMs, policies, reason }) => {
      return { dimension, value, untilMs, reason, ...(policies.length > 0 && { policies }) };
    });
  return { ...(off.length > 0 && { disabled: off }), ...(blocked.length > 0 && { blocks: blocked }) };
}

type PolicySetExceptions = Pick<PolicySet, "disabled" | "blocks">;

/** How many policies are read in one step: a millisecond's worth, if all of them are new. */
const policiesOfAStep = 25;

/** Policies by parsed document and version: the same object while neither changes, so that it is compiled once. */
const versioned = new WeakMap<Policy, Policy>();

function withVersion(policy: Policy, version: number): Policy {
  const known = versioned.get(policy);
  if (known?.version === version) return known;
  const made = { ...policy, version };
  versioned.set(policy, made);
  return made;
}

/** The place of a policy in the paths of problems. */
export function policyPath(id: string): readonly string[] {
  return id === defaultPolicyId ? ["default"] : ["policies", id];
}

interface Problems {
  readonly list: Problem[];
  add(path: Problem["path"], message: string): void;
}

/** Each problem once: one that both versions of a policy have is reported for one of them. */
function createProblems(): Problems {
  const list: Problem[] = [];
  const seen = new Set<string>();
  return {
    list,
    add(path, message): void {
      const key = JSON.stringify([path, message]);
      if (seen.has(key)) return;
      seen.add(key);
      list.push({ path, message });
    },
  };
}

function composeSubjects(
  { subjects, subjectLimits }: StoredRows,
  nowMs: number,
  reader: DocumentReader,
  problems: Problems,
): readonly SubjectEntry[] {
  const limitsByTarget = new Map<string, SubjectLimit[]>();
  for (const record of subjectLimits) {
    if (isOver(record, nowMs)) continue;
    const limit = readSubjectLimit(record, reader, problems);
    if (limit === undefined) continue;
    const key = subjectKey(record);
    const known = limitsByTarget.get(key);
    if (known === undefined) limitsByTarget.set(key, [limit]);
    else known.push(limit);
  }
  return subjects.flatMap(({ dimension, value, tier }): readonly SubjectEntry[] => {
    const limits = limitsByTarget.get(subjectKey({ dimension, value })) ?? [];
    if (tier === undefined && limits.length === 0) return [];
    const ordered = limits.toSorted(byPrecedence);
    return [{ dimension, value, ...(tier === undefined ? undefined : { tier }), limits: ordered }];
  });
}

function readSubjectLimit(
  { dimension, value, policy, limit, windows, untilMs }: SubjectLimitRecord,
  reader: DocumentReader,
  problems: Problems,
): SubjectLimit | undefined {
  const read = reader.windows(windows);
  for (const { path, message } of read.problems)
    problems.add(["subjects", dimension, value, policy, "windows", ...path], message);
  if (read.problems.length > 0) return undefined;
  return {
    policy,
    ...(limit === "" ? undefined : { limit }),
    windows: read.windows,
    ...(untilMs === undefined ? undefined : { untilMs }),
  };
}

function subjectKey({ dimension, value }: { readonly dimension: string; readonly value: string }): string {
  return `${dimension} ${value}`;
}

interface Known {
  readonly ids: readonly string[];
  readonly fallback: Policy | "none" | "absent";
  readonly files: PolicySet | undefined;
}

interface Tied {
  readonly policies: readonly Policy[];
  readonly byId: ReadonlyMap<string, Policy>;
  readonly subjects: readonly SubjectEntry[];
}

/** Policies and subjects without dangling references, each of which is reported. */
function withoutLooseEnds(
  policies: readonly Policy[],
  subjects: readonly SubjectEntry[],
  known: Known,
  problems: Problems,
): Tied {
  let tied = { policies, subjects };
  for (let round = 0; ; round++) {
    const stored = storedPart(tied.policies, tied.subjects, known);
    assemblePolicies([stored, ...filesPart(known)]);
    for (const { path, message } of stored.problems) problems.add(nameThings(path, tied), message);
    const before = tied;
    tied = withoutNamed(before, stored.problems);
    // Validation reports a bounded number of problems at a time, so more may remain.
    if (tied === before || round >= maxRounds)
      return { ...tied, byId: new Map(tied.policies.map((policy) => [policy.id, policy])) };
  }
}

const maxRounds = 200;

function storedPart(
  policies: readonly Policy[],
  subjects: readonly SubjectEntry[],
  { ids, fallback }: Known,
): PolicyPart {
  const written = ids.filter((id) => id !== defaultPolicyId);
  return {
    policies: sitedIn("policies", policies),
    ids: sitedIn("policies", written),
    fallback,
    subjects: sitedIn("subjects", subjects),
    problems: [],
  };
}

/** The policies of files, without those that replace stored ones or are replaced by them. */
function filesPart({ files, ids, fallback }: Known): readonly PolicyPart[] {
  if (files === undefined) return [];
  const stored = new Set(ids);
  const policies = files.policies.filter(({ id }) => !stored.has(id));
  const unique = new Map(policies.map((policy) => [policy.id, policy]));
  return [
    {
      policies: sitedIn("policies", [...unique.values()]),
      ids: sitedIn("policies", [...unique.keys()]),
      fallback: fallback === "absent" && !stored.has(defaultPolicyId) ? (files.fallback ?? "none") : "absent",
      subjects: [],
      problems: [],
    },
  ];
}

function sitedIn<T>(list: string, values: readonly T[]): readonly Sited<T>[] {
  return values.map((value, index) => ({ value, path: [list, index] }));
}

type Things = Pick<Tied, "policies" | "subjects">;

/** Translates paths by index, as validation reports them, to paths by id. */
function nameThings([list, index, ...rest]: Problem["path"], { policies, subjects }: Things): Problem["path"] {
  const policy = list === "policies" ? policies[index as number] : undefined;
  if (policy !== undefined) return [...policyPath(policy.id), ...rest];
  const subject = list === "subjects" ? subjects[index as number] : undefined;
  if (subject === undefined) return [list ?? "policies"];
  const [, place, ...within] = rest;
  const limit = rest[0] === "limits" ? subject.limits[place as number] : undefined;
  return ["subjects", subject.dimension, subject.value, ...(limit === undefined ? rest : [limit.policy, ...within])];
}

/** Removes the references that have problems: names of replaced policies, and limits of subjects. */
function withoutNamed(things: Things, problems: readonly Problem[]): Things {
  const replaces = new Map<number, Set<number>>();
  const limits = new Map<number, Set<number>>();
  for (const { path } of problems) {
    const [list, index, field, place] = path;
    const bad = list === "policies" && field === "replaces" ? replaces : undefined;
    const named = list === "subjects" && field === "limits" ? limits : bad;
    if (named === undefined) continue;
    const places = named.get(index as number) ?? new Set();
    named.set(index as number, places.add(place as number));
  }
  if (replaces.size === 0 && limits.size === 0) return things;
  return {
    policies: things.policies.map((policy, index) => {
      const bad = replaces.get(index);
      return bad === undefined ? policy : { ...policy, replaces: policy.replaces.filter((_, i) => !bad.has(i)) };
    }),
    subjects: things.subjects.map((subject, index) => {
      const bad = limits.get(index);
      return bad === undefined ? subject : { ...subject, limits: subject.limits.filter((_, i) => !bad.has(i)) };
    }),
  };
}
