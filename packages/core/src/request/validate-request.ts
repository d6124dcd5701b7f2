import { type Problem, SluiceError } from "../errors.ts";
import { type CheckRequest, maxCost, maxIdLength, maxIdTtlMs, maxNamedPolicies } from "./check-request.ts";

/**
 * Refuses a request that is not one, naming every field that is wrong. Callers in plain JavaScript have no compiler to
 * tell them that `preview: 1` is no preview. The values of dimensions are looked at when they are read.
 */
export function validateRequest(request: CheckRequest): void {
  if (isValid(request)) return;
  const problems = findProblems(request);
  const message = problems.map((problem) => `${problem.path.join(".") || "the request"} ${problem.message}`).join("; ");
  throw new SluiceError("invalid_request", message, problems);
}

/** The same as having no problems, without making a list of them. */
function isValid(request: CheckRequest): boolean {
  if (!isRecord(request)) return false;
  const { domain, dimensions, cost, id, idTtlMs, preview, policies, details, receipt } = request;
  return (
    (dimensions === undefined || isRecord(dimensions)) &&
    (cost === undefined || isCost(cost, preview)) &&
    (domain === undefined || typeof domain === "string") &&
    (id === undefined || isId(id)) &&
    (idTtlMs === undefined || isIdTtl(idTtlMs)) &&
    (preview === undefined || typeof preview === "boolean") &&
    (policies === undefined || isPolicyList(policies)) &&
    (details === undefined || typeof details === "boolean") &&
    (receipt === undefined || typeof receipt === "boolean")
  );
}

function isRecord(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCost(cost: unknown, preview: unknown): boolean {
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

function findProblems(request: CheckRequest): Problem[] {
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
  const zero = request.cost === 0 ? " (0 only in a preview)" : "";
  expect("cost", (value) => isCost(value, request.preview), `a whole number from 1 to ${maxCost}${zero}`);
  expect("id", isId, `a text of 1 to ${maxIdLength} characters`);
  expect("idTtlMs", isIdTtl, `a number from 1 to ${maxIdTtlMs}`);
  expect("preview", isBoolean, "true or false");
  expect("policies", isPolicyList, `a list of 1 to ${maxNamedPolicies} policy ids`);
  expect("details", isBoolean, "true or false");
  expect("receipt", isBoolean, "true or false");
  return problems;
}

function show(value: unknown): string {
  if (value === undefined || typeof value === "number") return String(value);
  const text = JSON.stringify(value) ?? typeof value;
  return text.length > 64 ? `${text.slice(0, 64)}…` : text;
}
