import { isDeepStrictEqual } from "node:util";
import { invalidPolicies } from "../control-errors.ts";
import type { PolicyDocument } from "../policy-control.ts";
import { defaultPolicyId } from "./read-documents.ts";

const maxDocumentLength = 1_000_000;

/**
 * A document as it is stored: with its id (except for the default policy, which has none in a file either), and without
 * a version, which the store counts. `owner` is filled in if the document names none.
 */
export function keptDocument(id: string, document: PolicyDocument, owner?: string | undefined): PolicyDocument {
  if (typeof document !== "object" || document === null || Array.isArray(document))
    throw invalidPolicies([{ path: [], message: "must be an object: the fields of a policy" }]);
  const { id: written, version: _, ...fields } = document;
  if (written !== undefined && written !== id)
    throw invalidPolicies([{ path: ["id"], message: `is ${JSON.stringify(written)}, and the policy's id is ${id}` }]);
  const stored = {
    ...(id === defaultPolicyId ? undefined : { id }),
    ...(owner === undefined || fields.owner !== undefined ? undefined : { owner }),
    ...fields,
  };
  // Values that JSON cannot represent would come back changed.
  const text = JSON.stringify(stored);
  if (text.length > maxDocumentLength)
    throw invalidPolicies([{ path: [], message: `is longer than ${maxDocumentLength} characters` }]);
  return JSON.parse(text) as PolicyDocument;
}

/** A document that names no owner leaves its policy to the one that it has. */
export function withStoredOwner(document: PolicyDocument, stored: PolicyDocument | undefined): PolicyDocument {
  return document.owner === undefined && stored?.owner !== undefined ? { ...document, owner: stored.owner } : document;
}

/**
 * Parses the store's text. Text that is not JSON, which only another version of Sluice can have written, is returned
 * unchanged.
 */
export function documentFromText(text: string): PolicyDocument {
  try {
    const document: unknown = JSON.parse(text);
    if (typeof document === "object" && document !== null) return document as PolicyDocument;
  } catch {
    // Reported below.
  }
  return { unreadable: text };
}

/** Whether two documents are equal, regardless of order. */
export function saysTheSame(one: PolicyDocument, other: PolicyDocument): boolean {
  return isDeepStrictEqual(one, other);
}

/** Whether two documents apply to the same requests and subjects, whatever their limits. */
export function hasSameScope(one: PolicyDocument, other: PolicyDocument): boolean {
  return isDeepStrictEqual(findScope(one), findScope(other));
}

function findScope({ match, limits }: PolicyDocument): unknown {
  const by = Array.isArray(limits) ? limits.map((limit: unknown) => (limit as { by?: unknown } | null)?.by) : limits;
  return { match, by };
}

/** The team that a document names. */
export function findOwner({ owner }: PolicyDocument): string | undefined {
  return typeof owner === "string" ? owner : undefined;
}
