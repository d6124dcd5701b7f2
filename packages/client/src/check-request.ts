import { type CheckRequest, SluiceError } from "sluice";
import { maxDimensionLength, maxDimensions, maxNameLength, validateRequest } from "sluice/internal";
import { invalidRequest } from "./invalid-request.ts";

/** The longest policy id that servers accept. */
const maxPolicyLength = 256;

/** One request that cannot be sent, or is larger than servers accept, must not spoil those that travel with it. */
export function checkRequest(request: CheckRequest, costs: "asked" | "charged"): void {
  validateRequest(request, costs);
  if (request.limits !== undefined)
    throw invalidRequest("limits", "are for a limiter in this process; a server decides by its policies");
  const { dimensions, domain = "", policies } = request;
  if (domain.length > maxNameLength) throw invalidRequest("domain", `must have at most ${maxNameLength} characters`);
  if (policies?.some((id) => id.length > maxPolicyLength))
    throw invalidRequest("policies", `must have at most ${maxPolicyLength} characters each`);
  let count = 0;
  for (const name in dimensions) {
    count += 1;
    if (name.length === 0 || name.length > maxNameLength)
      throw invalidRequest("dimensions", `must have names of 1 to ${maxNameLength} characters`);
    const value: unknown = dimensions[name];
    if (typeof value === "string" && value.length <= maxDimensionLength) continue;
    const message =
      typeof value === "string"
        ? `must have at most ${maxDimensionLength} characters, but has ${value.length}`
        : `must be a string, not ${value === null ? "null" : typeof value}`;
    throw new SluiceError("invalid_request", `dimensions.${name} ${message}`, [
      { path: ["dimensions", name], message },
    ]);
  }
  if (count > maxDimensions)
    throw invalidRequest("dimensions", `must have at most ${maxDimensions} entries, but has ${count}`);
}
