import { Dimension } from "@sluice/protocol";
import { type Problem, SluiceError } from "sluice";
import { maxDimensionLength } from "sluice/internal";
import { findIpProblem } from "../../data-plane/service/find-ip-problem.ts";

const names: Readonly<Record<number, string>> = {
  [Dimension.USER]: "user",
  [Dimension.IP]: "ip",
  [Dimension.API_KEY]: "api_key",
};

/** The subject and endpoint of a request. Throws `invalid_request` that names every invalid field. */
export function readIdentifier(request: {
  readonly identifier: string;
  readonly dimension: Dimension;
  readonly endpoint: string;
}): Readonly<Record<string, string>> {
  const { identifier, dimension, endpoint } = request;
  const name = names[dimension];
  const problems: Problem[] = [];
  if (name === undefined)
    problems.push({ path: ["dimension"], message: `must be USER, IP or API_KEY, but is ${dimension}` });
  if (identifier.length === 0 || identifier.length > maxDimensionLength) {
    const message = `must have 1 to ${maxDimensionLength} characters, but has ${identifier.length}`;
    problems.push({ path: ["identifier"], message });
  }
  if (endpoint.length > maxDimensionLength) {
    const message = `must have at most ${maxDimensionLength} characters, but has ${endpoint.length}`;
    problems.push({ path: ["endpoint"], message });
  }
  const badIp = name === "ip" ? findIpProblem(identifier) : undefined;
  if (badIp !== undefined) problems.push({ path: ["identifier"], message: badIp });
  if (problems.length > 0) {
    const message = problems.map((problem) => `${problem.path.join(".")} ${problem.message}`).join("; ");
    throw new SluiceError("invalid_request", message, problems);
  }
  return endpoint === "" ? { [name!]: identifier } : { [name!]: identifier, endpoint };
}
