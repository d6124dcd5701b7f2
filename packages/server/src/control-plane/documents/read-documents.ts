import { lintPolicies, type Policy, type Problem, parseWindow, SluiceError, type Window } from "sluice";
import { defaultPolicyId } from "sluice/internal";
import { readPolicyDocument } from "sluice/policy-text";

/** The id of the stored policy that applies if no other matches. */
export { defaultPolicyId };

/** A stored document, as far as it could be parsed. It is whole only if `problems` is empty. */
export interface ReadDocument {
  /** `none`: the default policy limits nothing. Undefined if it could not be parsed. */
  readonly policy: Policy | "none" | undefined;
  /** Paths begin at the document. */
  readonly problems: readonly Problem[];
}

/** Parses stored documents. A document of the previous generation is parsed again only if its text has changed. */
export interface DocumentReader {
  policy(id: string, text: string): ReadDocument;
  windows(text: string): ReadWindows;
  /** Forgets documents that were not read since the last call. Called after each generation. */
  sweep(): void;
}

export interface ReadWindows {
  readonly windows: readonly Window[];
  readonly problems: readonly Problem[];
}

export function createDocumentReader(): DocumentReader {
  const policies = createMemory<ReadDocument>();
  const windows = createMemory<ReadWindows>();
  return {
    policy: (id, text) => policies.recall(id, text, () => readStoredPolicy(id, text)),
    windows: (text) => windows.recall(text, text, () => readStoredWindows(text)),
    sweep(): void {
      policies.sweep();
      windows.sweep();
    },
  };
}

interface Memory<T> {
  recall(key: string, text: string, make: () => T): T;
  sweep(): void;
}

/** Two texts may be in use under one key: the old and the new version of a policy. */
function createMemory<T>(): Memory<T> {
  type Known = ReadonlyMap<string, readonly { readonly text: string; readonly value: T }[]>;
  let before: Known = new Map();
  let now = new Map<string, { readonly text: string; readonly value: T }[]>();
  return {
    recall(key, text, make): T {
      const used = now.get(key) ?? [];
      const current = used.find((one) => one.text === text);
      if (current !== undefined) return current.value;
      const known = before.get(key)?.find((one) => one.text === text) ?? { text, value: make() };
      if (used.length === 0) now.set(key, used);
      used.push(known);
      return known.value;
    },
    sweep(): void {
      before = now;
      now = new Map();
    },
  };
}

/** Parses a policy from its text in the store. */
export function readStoredPolicy(id: string, text: string): ReadDocument {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return { policy: undefined, problems: [{ path: [], message: "is not JSON" }] };
  }
  return readDocument(id, document);
}

/**
 * Parses a policy from a document: an entry of a policy file's `policies`, or for the id `default` the value of
 * `default`.
 */
export function readDocument(id: string, document: unknown): ReadDocument {
  return id === defaultPolicyId ? readDefault(document) : readPolicy(id, document);
}

function readPolicy(id: string, document: unknown): ReadDocument {
  const read = readPolicyDocument({ policies: [document] });
  const problems = read.problems.map((problem) => ({ ...problem, path: problem.path.slice(2) }));
  const policy = read.policies[0]?.value;
  if (policy !== undefined && policy.id !== id)
    problems.push({ path: ["id"], message: `is ${policy.id}, and the policy's id is ${id}` });
  return { policy: problems.length > 0 ? undefined : policy, problems };
}

function readDefault(document: unknown): ReadDocument {
  const { id, ...fields } = typeof document === "object" && document !== null ? (document as { id?: unknown }) : {};
  // The parser reports a value that is not an object.
  const read = readPolicyDocument({ policies: [], default: id === defaultPolicyId ? fields : document });
  const problems = read.problems.map((problem) => ({ ...problem, path: problem.path.slice(1) }));
  const { fallback } = read;
  if (problems.length > 0 || fallback === "absent") return { policy: undefined, problems };
  return { policy: fallback !== "none" && limitsNothing(fallback) ? "none" : fallback, problems };
}

function limitsNothing({ unlimited, deny }: Policy): boolean {
  return unlimited && Object.keys(deny).length === 0;
}

/** The problems of a policy on its own, and its warnings. */
export function inspectDocument({ id, text }: { readonly id: string; readonly text: string }): {
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
} {
  const { policy, problems } = readStoredPolicy(id, text);
  return { problems, warnings: policy === undefined || problems.length > 0 ? [] : lintDocument(id, policy) };
}

/** The warnings about one document. */
export function lintDocument(id: string, policy: Policy | "none"): readonly Problem[] {
  if (policy === "none") return [];
  const isDefault = id === defaultPolicyId;
  const warnings = lintPolicies({
    kind: "policy_set",
    policies: isDefault ? [] : [policy],
    ...(isDefault ? { fallback: policy } : undefined),
    subjects: [],
  });
  return warnings.map(({ path, message }) => ({ path: path.slice(isDefault ? 1 : 2), message }));
}

const maxWindows = 16;

function readStoredWindows(text: string): ReadWindows {
  let written: unknown;
  try {
    written = JSON.parse(text);
  } catch {
    return { windows: [], problems: [{ path: [], message: "is not JSON" }] };
  }
  return readWindows(written);
}

/** Windows as a policy file has them: a list of 1 to 16. */
export function readWindows(written: unknown): ReadWindows {
  if (!Array.isArray(written) || written.length === 0 || written.length > maxWindows)
    return { windows: [], problems: [{ path: [], message: `must be a list of 1 to ${maxWindows} windows` }] };
  const problems: Problem[] = [];
  const windows = written.flatMap((one: unknown, index): readonly Window[] => {
    try {
      return [parseWindow(one)];
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
      problems.push(...error.problems.map((problem) => ({ ...problem, path: [index, ...problem.path] })));
      return [];
    }
  });
  return { windows: problems.length > 0 ? [] : windows, problems };
}
