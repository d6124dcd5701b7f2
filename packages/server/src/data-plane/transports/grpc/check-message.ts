import type { CheckRequest as CheckMessage } from "@sluice/protocol";
import { type CheckRequest, type Problem, SluiceError } from "sluice";
import { maxDimensionLength, maxDimensions, maxIdTtlMs, maxNameLength } from "sluice/internal";
import { findIpProblem } from "../../service/find-ip-problem.ts";

/**
 * A message's question, in Sluice's own words. Throws `invalid_request` for what is unbounded otherwise, or has another name
 * there.
 */
export function readCheck(message: CheckMessage, deadlineMs: number | undefined): CheckRequest {
  const { domain, dimensions, id, idTtlMs, policies } = message;
  refuseDimensions(dimensions);
  refuseDomain(domain);
  if (idTtlMs > maxIdTtlMs) refuse("id_ttl_ms", `must be at most ${maxIdTtlMs}, but is ${idTtlMs}`);
  return {
    domain: domain === "" ? undefined : domain,
    dimensions,
    cost: message.cost,
    id: id === "" ? undefined : id,
    idTtlMs: idTtlMs === 0 ? undefined : idTtlMs,
    preview: message.preview,
    policies: policies.length === 0 ? undefined : policies,
    deadlineMs,
    details: message.details,
    receipt: message.receipt,
  };
}

function refuse(field: string, message: string, at: readonly string[] = []): never {
  const path = [...at, field];
  throw new SluiceError("invalid_request", `${path.join(".")} ${message}`, [{ path, message }]);
}

/** `at`: in which message of the request. */
export function refuseDomain(domain: string, at?: readonly string[]): void {
  if (domain.length > maxNameLength)
    refuse("domain", `must have at most ${maxNameLength} characters, but has ${domain.length}`, at);
}

/** Throws `invalid_request` that names every dimension that is wrong. `at`: in which message of the request. */
export function refuseDimensions(dimensions: Readonly<Record<string, string>>, at: readonly string[] = []): void {
  let count = 0;
  let good = true;
  for (const name in dimensions) {
    count += 1;
    const value = dimensions[name]!;
    if (name.length === 0 || name.length > maxNameLength || value.length > maxDimensionLength || name === "__proto__")
      good = false;
  }
  if (good && count <= maxDimensions && findIpProblem(dimensions.ip) === undefined) return;
  const problems = findProblems(dimensions, count).map((problem) => ({ ...problem, path: [...at, ...problem.path] }));
  const message = problems.map((problem) => `${problem.path.join(".")} ${problem.message}`).join("; ");
  throw new SluiceError("invalid_request", message, problems);
}

function findProblems(dimensions: Readonly<Record<string, string>>, count: number): readonly Problem[] {
  if (count > maxDimensions)
    return [{ path: ["dimensions"], message: `must have at most ${maxDimensions} entries, but has ${count}` }];
  return Object.entries(dimensions).flatMap(([name, value]): Problem[] => {
    if (name.length === 0) return [{ path: ["dimensions"], message: "must have no entry without a name" }];
    if (name.length > maxNameLength) {
      const message = `must have names of at most ${maxNameLength} characters, but one has ${name.length}`;
      return [{ path: ["dimensions"], message }];
    }
    const path = ["dimensions", name];
    if (name === "__proto__") return [{ path, message: "is not a name that a dimension may have" }];
    if (value.length > maxDimensionLength)
      return [{ path, message: `must have at most ${maxDimensionLength} characters, but has ${value.length}` }];
    const problem = name === "ip" ? findIpProblem(value) : undefined;
    return problem === undefined ? [] : [{ path, message: problem }];
  });
}
