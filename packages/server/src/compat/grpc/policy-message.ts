import type { Policy as PolicyMessage } from "@sluice/protocol";
import type { Problem } from "sluice";
import { invalidField, invalidRequest } from "../../control-plane/control-errors.ts";
import { isTooDeep, maxDepth } from "../../control-plane/documents/is-too-deep.ts";
import { readDocument } from "../../control-plane/documents/read-documents.ts";
import type { PolicyDocument, StoredPolicy } from "../../control-plane/policy-control.ts";
import type { RolloutRequest } from "../../control-plane/rollout-control.ts";
import {
  documentFromFields,
  fieldsFromDocument,
  isFailPolicy,
  isRuleType,
  noFields,
  type PolicyFields,
  timestampFromMs,
} from "./policy-fields.ts";

/** The fields by their names on the wire. */
const wireNames: Readonly<Record<keyof PolicyFields, string>> = {
  ruleType: "rule_type",
  windows: "windows",
  dimensions: "dimensions",
  failPolicy: "fail_policy",
  costMap: "cost_map",
  ownerTeam: "owner_team",
  validFrom: "valid_from",
  domain: "domain",
};
const fieldNames = Object.keys(wireNames) as (keyof PolicyFields)[];

/** Parses a policy from a message into a document. Throws `invalid_request` with every invalid field. */
export function documentFromMessage(message: PolicyMessage): PolicyDocument {
  const problems = [...findProblems(message)];
  if (problems.length > 0) throw invalidRequest(problems);
  if (message.documentJson === "") return parseFields(message);
  const document = parseDocument(message.documentJson);
  const { ownerTeam, ...fields } = message;
  const owned = ownerTeam !== "" && document.owner === undefined ? { ...document, owner: ownerTeam } : document;
  refuseContradiction(message.policyId, owned, { ...fields, ownerTeam });
  return owned;
}

function* findProblems({
  policyId,
  version,
  rolloutPct,
  ruleType,
  failPolicy,
  windows,
}: PolicyMessage): Iterable<Problem> {
  if (policyId === "") yield { path: ["policy_id"], message: "is missing" };
  if (version < 0) yield { path: ["version"], message: `must be 0 or more, but is ${version}` };
  if (rolloutPct !== undefined && !isShare(rolloutPct)) {
    const message = `must be a share from 0.0001 to 1, in steps of 0.0001, but is ${rolloutPct}`;
    yield { path: ["rollout_pct"], message };
  }
  if (!isRuleType(ruleType)) yield { path: ["rule_type"], message: `must be a known value, but is ${ruleType}` };
  if (!isFailPolicy(failPolicy))
    yield { path: ["fail_policy"], message: `must be a known value, but is ${failPolicy}` };
  for (const [index, { spanMs }] of windows.entries()) {
    if (spanMs < 1) yield { path: ["windows", index, "span_ms"], message: `must be 1 or more, but is ${spanMs}` };
  }
}

function parseFields(message: PolicyMessage): PolicyDocument {
  const { policyId, windows, dimensions } = message;
  if (windows.length === 0)
    throw invalidField(["windows"], "is empty; send windows, or the whole policy as document_json");
  const document = documentFromFields(policyId, message);
  const { problems } = readDocument(policyId, document);
  if (problems.length > 0) throw invalidRequest(problems.map((problem) => wireProblem(problem, dimensions)));
  return document;
}

/** Turns a problem with the document into one with the field that it came from. */
function wireProblem(problem: Problem, dimensions: readonly string[]): Problem {
  const [first, index, part, ...rest] = problem.path;
  const names: Readonly<Record<string, string>> = {
    id: "policy_id",
    owner: "owner_team",
    cost: "cost_map",
    on_failure: "fail_policy",
    valid_from: "valid_from",
  };
  if (first !== "limits") return { ...problem, path: [names[`${first}`] ?? first!, ...problem.path.slice(1)] };
  if (part === "by") return { ...problem, path: ["dimensions", dimensions.length === 0 ? 0 : (index as number)] };
  if (part !== "windows") return { ...problem, path: [part === "algorithm" ? "rule_type" : "dimensions"] };
  return { ...problem, path: ["windows", ...rest.map((step) => (step === "per" ? "span_ms" : step))] };
}

function parseDocument(json: string): PolicyDocument {
  let document: unknown;
  try {
    document = JSON.parse(json);
  } catch (error) {
    throw invalidField(["document_json"], `is not JSON: ${(error as Error).message}`);
  }
  if (isTooDeep(document)) throw invalidField(["document_json"], `is nested deeper than ${maxDepth} levels`);
  if (typeof document === "object" && document !== null && !Array.isArray(document)) return document as PolicyDocument;
  throw invalidField(["document_json"], "must be an object: a policy as in a policy file");
}

/** Fields sent along with a document must agree with it. */
function refuseContradiction(id: string, document: PolicyDocument, sent: PolicyFields): void {
  const sentNames = fieldNames.filter((name) => !isSame(sent[name], noFields[name]));
  if (sentNames.length === 0) return;
  const documented: PolicyFields = fieldsFromDocument(id, document) ?? { ...noFields, ownerTeam: ownerIn(document) };
  const normalized = fieldsFromDocument(id, documentFromFields(id, sent)) ?? sent;
  const problems = sentNames
    .filter((name) => !isSame(normalized[name], documented[name]) && !isSame(sent[name], documented[name]))
    .map((name): Problem => {
      const message = "disagrees with document_json; leave one of the two out";
      return { path: [wireNames[name]], message };
    });
  if (problems.length > 0) throw invalidRequest(problems);
}

function ownerIn({ owner }: PolicyDocument): string {
  return typeof owner === "string" ? owner : "";
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

/** Maps have no order. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
}

/** Subjects are distinguished by hundredths of a percent. */
function isShare(share: number): boolean {
  const parts = share * 1e4;
  return parts >= 1 - 1e-6 && share <= 1 && Math.abs(parts - Math.round(parts)) < 1e-6;
}

/** How long the version for all subjects is watched, and may still be rolled back automatically. */
const lastHoldMs = 10 * 60_000;

/** Below 1: to that share of subjects, until an operator advances it. */
export function rolloutFromMessage({ rolloutPct }: PolicyMessage): RolloutRequest | undefined {
  if (rolloutPct === undefined || rolloutPct >= 1) return undefined;
  // 0.07 × 100 is 7.000000000000001.
  const percent = Math.round(rolloutPct * 1e4) / 100;
  return {
    steps: [
      { percent, holdMs: 0 },
      { percent: 100, holdMs: lastHoldMs },
    ],
  };
}

/** A policy as a message. It may be sent back. */
export function policyMessage(stored: StoredPolicy, createdMs: number | undefined): PolicyMessage {
  const fields = fieldsFromDocument(stored.id, stored.document);
  return {
    ...(fields ?? { ...noFields, ownerTeam: stored.owner ?? "" }),
    policyId: stored.id,
    version: stored.version,
    createdAt: createdMs === undefined ? undefined : timestampFromMs(createdMs),
    rolloutPct: stored.rollout === undefined ? 1 : stored.rollout.percent / 100,
    documentJson: JSON.stringify(stored.document),
    dryRun: false,
    why: stored.why,
    fieldsComplete: fields !== undefined,
  };
}
