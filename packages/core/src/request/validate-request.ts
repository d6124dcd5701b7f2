import { type Problem, SluiceError } from "../errors.ts";
import { maxCost, maxDeadlineMs, maxGivenLimits, maxIdLength, maxIdTtlMs, maxNamedPolicies } from "../policy/bounds.ts";
import type { CheckRequest } from "./check-request.ts";

/**
 * Refuses an invalid request, naming every wrong field. Callers in plain JavaScript have no compiler to tell them that
 * `preview: 1` is not a preview. Values of dimensions are checked when they are read.
 */
export function validateRequest(request: CheckRequest, costs: Costs = "asked"): void {
  if (isValid(request, costs)) return;
  const problems = findProblems(request, costs);
  const message = problems.map((problem) => `${problem.path.join(".") || "the request"} ${problem.message}`).join("; ");
  throw new SluiceError("invalid_request", message, problems);
}

/** Which costs are valid: those of a check, or of a charge, for which a cost below 0 is a credit. */
type Costs = "asked" | "charged";

/** The same as having no problems, without building a list of them. */
function isValid(request: CheckRequest, costs: Costs): boolean {
  if (!isRecord(request)) return false;
  const { domain, dimensions, cost, id, idTtlMs, preview, policies, details, receipt } = request;
  const { limits, deadlineMs } = request;
  return (
    (dimensions === undefined || isRecord(dimensions)) &&
    (cost === undefined || isCost(cost, preview, costs)) &&
    (domain === undefined || typeof domain === "string") &&
    (id === undefined || isId(id)) &&
    (idTtlMs === undefined || isIdTtl(idTtlMs)) &&
    (preview === undefined || typeof preview === "boolean") &&
    (policies === undefined || isPolicyList(policies)) &&
    (limits === undefined || (policies === undefined && isLimitList(limits))) &&
    (deadlineMs === undefined || isDeadline(deadlineMs)) &&
    (details === undefined || typeof details === "boolean") &&
    (receipt === undefined || typeof receipt === "boolean")
  );
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCost(cost: unknown, preview: unknown, costs: Costs): boolean {
  if (costs === "charged") return Number.isInteger(cost) && cost !== 0 && Math.abs(cost as number) <= maxCost;
  return Number.isInteger(cost) && (cost as number) <= maxCost && (cost as number) >= (preview === true ? 0 : 1);
}

function isId(id: unknown): boolean {
  return typeof id === "string" && id.length > 0 && id.length <= maxIdLength;
}

function isIdTtl(ms: unknown): boolean {
  return typeof ms === "number" && ms >= 1 && ms <= maxIdTtlMs;
}

function isPolicyList(ids: unknown): boolean {
  return (
    Array.isArray(ids) && ids.length >= 1 && ids.length <= maxNamedPolicies && ids.every((id) => typeof id === "string")
  );
}

/** Light on purpose: these come from code, not from outside. */
function isLimitList(limits: unknown): boolean {
  return (
    Array.isArray(limits) &&
    limits.length >= 1 &&
    limits.length <= maxGivenLimits &&
    limits.every(
      (one) => isRecord(one) && typeof one.name === "string" && Array.isArray(one.by) && isRecord(one.window),
    ) &&
    (limits.length === 1 || new Set(limits.map(({ name }) => name)).size === limits.length)
  );
}

function isDeadline(ms: unknown): boolean {
  return typeof ms === "number" && ms >= 1 && ms <= maxDeadlineMs;
}

function findProblems(request: CheckRequest, costs: Costs): Problem[] {
  if (!isRecord(request)) return [{ path: [], message: `must be an object, not ${show(request)}` }];
  const problems: Problem[] = [];
  const expect = (field: keyof CheckRequest, holds: (value: unknown) => boolean, wanted: string): void => {
    const value: unknown = request[field];
    if (value !== undefined && !holds(value)) {
      problems.push({ path: [field], message: `must be ${wanted}, not ${show(value)}` });
    }
  };
  const isBoolean = (value: unknown): boolean => typeof value === "boolean";
  expect("domain", (value) => typeof value === "string", "a text");
  expect("dimensions", isRecord, "an object of texts");
  expect("cost", (value) => isCost(value, request.preview, costs), wantedCost(request.cost, costs));
  expect("id", isId, `a text of 1 to ${maxIdLength} characters`);
  expect("idTtlMs", isIdTtl, `a number from 1 to ${maxIdTtlMs}`);
  expect("preview", isBoolean, "true or false");
  expect("policies", isPolicyList, `a list of 1 to ${maxNamedPolicies} policy ids`);
  expect("limits", isLimitList, `a list of 1 to ${maxGivenLimits} limits, each with a different name`);
  if (request.limits !== undefined && request.policies !== undefined)
    problems.push({ path: ["limits"], message: "cannot be combined with policies: one or the other decides" });
  expect("deadlineMs", isDeadline, `a number from 1 to ${maxDeadlineMs}`);
  expect("details", isBoolean, "true or false");
  expect("receipt", isBoolean, "true or false");
  return problems;
}

function wantedCost(cost: unknown, costs: Costs): string {
  if (costs === "charged") return `a whole number from 1 to ${maxCost}, or from -${maxCost} to -1 to give back`;
  const elsewhere =
    cost === 0 ? " (0 only in a preview)" : typeof cost === "number" && cost < 0 ? " (below 0 only in a charge)" : "";
  return `a whole number from 1 to ${maxCost}${elsewhere}`;
}

function show(value: unknown): string {
  if (value === undefined || typeof value === "number") return String(value);
  const text = JSON.stringify(value) ?? typeof value;
  return text.length > 64 ? `${text.slice(0, 64)}…` : text;
}
