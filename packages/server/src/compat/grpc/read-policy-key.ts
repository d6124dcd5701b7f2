import { type CheckRequest, type Problem, SluiceError } from "sluice";
import { refuseDimensions, refuseDomain } from "../../data-plane/transports/grpc/check-message.ts";

/** A policy by its id, or those of a domain, and the subject. */
export function readPolicyKey(request: {
  readonly policyId: string;
  readonly domain: string;
  readonly dimensions: Readonly<Record<string, string>>;
}): Pick<CheckRequest, "policies" | "domain" | "dimensions"> {
  const { policyId, domain, dimensions } = request;
  refuseDimensions(dimensions);
  refuseDomain(domain);
  return {
    policies: policyId === "" ? undefined : [policyId],
    domain: domain === "" ? undefined : domain,
    dimensions,
  };
}

/** Runs `ask`, and reports problems by the field names of these messages: `policy_id`, not `policies[0]`. */
export function askByPolicyId<T>(ask: () => T | Promise<T>): T | Promise<T> {
  try {
    const answer = ask();
    return answer instanceof Promise ? answer.catch(refuseByOwnFields) : answer;
  } catch (error) {
    return refuseByOwnFields(error);
  }
}

function refuseByOwnFields(error: unknown): never {
  if (!(error instanceof SluiceError) || error.problems.length === 0) throw error;
  const problems = error.problems.map(withOwnField);
  // Messages about an unknown policy name no field.
  const message =
    error.code === "invalid_request"
      ? problems.map((problem) => `${problem.path.join(".")} ${problem.message}`).join("; ")
      : error.message;
  throw new SluiceError(error.code, message, problems);
}

function withOwnField(problem: Problem): Problem {
  const [field] = problem.path;
  if (field === "policies") return { ...problem, path: ["policy_id"] };
  return field === "id" ? { ...problem, path: ["request_id"] } : problem;
}
