import { maxOverrideMs } from "@sluice/protocol/admin";
import type { Problem } from "sluice";
import { parseIp } from "sluice/internal";
import { readPolicyDocument } from "sluice/policy-text";
import { invalidField, invalidRequest } from "../control-errors.ts";
import { dimensionsFromSubject } from "../documents/canonical-subject.ts";

/** Names that a policy file uses for other fields of a subject. */
const notDimensions: ReadonlySet<string> = new Set(["tier", "limits"]);

/** Throws `invalid_request` for a subject that no request can have. */
export function requireSubject(dimension: string, value: string): void {
  if (notDimensions.has(dimension)) throw invalidField(["dimension"], `must be a dimension, and ${dimension} is not`);
  const { problems } = readPolicyDocument({ policies: [], subjects: [{ [dimension]: value, tier: "any" }] });
  if (problems.length > 0) throw invalidRequest(problems.map((problem) => ({ ...problem, path: ["subject"] })));
  if (value === "") throw invalidField(["subject"], "must be a value, and is empty");
  if (dimension === "ip" && parseIp(dimensionsFromSubject(dimension, value).ip ?? "") === undefined)
    throw invalidField(["subject"], `must be an address, but is ${JSON.stringify(value.slice(0, 64))}`);
}

/** Throws `invalid_request` with every field that a policy file could not have. */
export function requireForm(entry: Readonly<Record<string, unknown>>): void {
  const { problems } = readPolicyDocument({ policies: [], subjects: [JSON.parse(JSON.stringify(entry))] });
  if (problems.length > 0) throw invalidRequest(problems.map(fromField));
}

function fromField({ path: [, , field, ...rest], message }: Problem): Problem {
  // `limits[0].windows` is the field `windows` of the request.
  return { path: field === "limits" ? rest.slice(1) : [field ?? "subject", ...rest], message };
}

/** Throws `invalid_request` if an override does not end, or too late. */
export function requireEnd(untilMs: number | undefined, nowMs: number): void {
  if (untilMs === undefined) return;
  if (!Number.isSafeInteger(untilMs) || untilMs <= nowMs)
    throw invalidField(["until_ms"], "must be in the future, in whole milliseconds since 1970");
  if (untilMs > nowMs + maxOverrideMs) throw invalidField(["until_ms"], "must be within a year from now");
}
