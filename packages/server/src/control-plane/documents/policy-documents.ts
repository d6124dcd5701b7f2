import { isDeepStrictEqual } from "node:util";
import { invalidPolicies } from "../control-errors.ts";
import type { PolicyDocument } from "../control-plane.ts";
import { defaultPolicyId } from "./read-documents.ts";

const maxDocumentLength = 1_000_000;

/**
 * A document as it is kept: with its id, but for the default policy, which has none in a file either, and without a version, which
 * is the store's to count. `owner` is filled in where the document names none.
 */
export function keptDocument(id: string, document: PolicyDocument, owner?: string | undefined): PolicyDocument {
  if (typeof document !== "object" || document === null || Array.isArray(document))
    throw invalidPolicies([{ path: [], message: "must be an object: the fields of a policy" }]);
  const { id: written, version: _, ...fields } = document;
  if (written !== undefined && written !== id)
    throw invalidPolicies([{ path: ["id"], message: `is ${JSON.stringify(written)}, and the policy's id is ${id}` }]);
  const kept = {
    ...(id === defaultPolicyId ? undefined : { id }),
    ...(owner === undefined || fields.owner !== undefined ? undefined : { owner }),
    ...fields,
  };
  // What JSON has no words for would come back as something else.
  const text = JSON.stringify(kept);
  if (text.length > maxDocumentLength)
    throw invalidPolicies([{ path: [], message: `is longer than ${maxDocumentLength} characters` }]);
  return JSON.parse(text) as PolicyDocument;
}

/** From the store's text. What is no JSON, and only another version of Sluice can have written, is told as it is. */
export function documentFromText(text: string): PolicyDocument {
  try {
    const document: unknown = JSON.parse(text);
    if (typeof document === "object" && document !== null) return document as PolicyDocument;
  } catch {
    // Told below.
  }
  return { unreadable: text };
}

/** Whether two documents say the same, in whatever order. */
export function saysTheSame(one: PolicyDocument, other: PolicyDocument): boolean {
  return isDeepStrictEqual(one, other);
}

/** Whether two documents hold for the same requests and subjects, whatever they limit them to. */
export function holdsForTheSame(one: PolicyDocument, other: PolicyDocument): boolean {
  return isDeepStrictEqual(scopeOf(one), scopeOf(other));
}

function scopeOf({ match, limits }: PolicyDocument): unknown {
  const by = Array.isArray(limits) ? limits.map((limit: unknown) => (limit as { by?: unknown } | null)?.by) : limits;
  return { match, by };
}

/** The team that a document names. */
export function ownerOf({ owner }: PolicyDocument): string | undefined {
  return typeof owner === "string" ? owner : undefined;
}
