import type { JsonObject } from "@sluice/protocol/admin";
import { diffDocuments } from "../../control-plane/documents/diff-documents.ts";
import { saysTheSame } from "../../control-plane/documents/policy-documents.ts";
import type { DiffLine } from "./diff-lines.ts";

/** What becomes of one policy. */
export interface PlannedChange {
  readonly id: string;
  readonly action: "create" | "change" | "delete" | "unchanged";
  /** The version that is there; 0: none. */
  readonly version: number;
  /** Absent where it is deleted. */
  readonly document: JsonObject | undefined;
  /** The whole of it, line by line. */
  readonly lines: readonly DiffLine[];
}

export interface StoredDocument {
  readonly id: string;
  readonly version: number;
  readonly document: JsonObject;
}

/**
 * What has to be done for the store to hold `wanted`: what is stored and not wanted is deleted where that is to `replace` all of it,
 * and stays else. A document that names no owner leaves the policy to the one it has. In order of ids; deletions last.
 */
export function planPolicies(
  wanted: ReadonlyMap<string, JsonObject>,
  stored: readonly StoredDocument[],
  replace: boolean,
): readonly PlannedChange[] {
  const known = new Map(stored.map((one) => [one.id, one]));
  const puts = [...wanted].map(([id, written]): PlannedChange => {
    const there = known.get(id);
    const document = withOwner(written, there?.document);
    const action = there === undefined ? "create" : saysTheSame(there.document, document) ? "unchanged" : "change";
    return { id, action, version: there?.version ?? 0, document, lines: diffOf(there?.document, document) };
  });
  const deletions = stored
    .filter(({ id }) => replace && !wanted.has(id))
    .map(
      ({ id, version, document }): PlannedChange => ({
        id,
        action: "delete",
        version,
        document: undefined,
        lines: diffOf(document, undefined),
      }),
    );
  return [...puts.sort(byId), ...deletions.sort(byId)];
}

function withOwner(written: JsonObject, stored: JsonObject | undefined): JsonObject {
  return written.owner === undefined && stored?.owner !== undefined ? { ...written, owner: stored.owner } : written;
}

function diffOf(before: JsonObject | undefined, after: JsonObject | undefined): readonly DiffLine[] {
  return diffDocuments(before, inOrderOf(before, after)).text.split("\n").slice(0, -1);
}

/** Fields in the order in which they were: only what changed shall show. */
function inOrderOf(before: JsonObject | undefined, after: JsonObject | undefined): JsonObject | undefined {
  if (before === undefined || after === undefined) return after;
  const keys = [...Object.keys(before).filter((key) => Object.hasOwn(after, key)), ...Object.keys(after)];
  return Object.fromEntries(
    [...new Set(keys)].map((key) => {
      const [old, young] = [before[key], after[key]];
      return [key, isObject(old) && isObject(young) ? inOrderOf(old, young) : young];
    }),
  );
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function byId(a: PlannedChange, b: PlannedChange): number {
  return a.id < b.id ? -1 : 1;
}
