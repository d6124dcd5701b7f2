import {
  boolean,
  type CheckRequest,
  described,
  integer,
  listOf,
  mapOf,
  maxCost,
  maxDimensionLength,
  maxDimensions,
  maxIdLength,
  maxNamedPolicies,
  objectOf,
  refine,
  type Shape,
  text,
} from "sluice";
import { problemOfIp } from "./problem-of-ip.ts";

export const maxChecks = 1_000;
const maxNameLength = 128;

/** The body of a check. */
export const checkShape: Shape<CheckRequest> = refine(
  objectOf(
    {},
    {
      dimensions: described(
        refine(
          mapOf(text({ max: maxNameLength }), text({ min: 0, max: maxDimensionLength }), { max: maxDimensions }),
          (dimensions, reading) => {
            const problem = problemOfIp(dimensions.ip);
            return problem === undefined ? dimensions : reading.problem(problem, "ip");
          },
        ),
        "Who asks for what, by name: user, tenant, ip, endpoint, method, or names of your own.",
        { examples: [{ user: "u1", endpoint: "/v1/orders", method: "GET" }] },
      ),
      cost: described(
        integer({ min: 0, max: maxCost }),
        "What the request takes. Absent: what the policy says, else 1. 0 only in a preview.",
      ),
      domain: described(text({ max: maxNameLength }), "Which family of policies is asked.", { default: "default" }),
      id: described(text({ max: maxIdLength }), "Charged once, however often it is sent. Choose it yourself."),
      preview: described(boolean, "Ask without taking.", { default: false }),
      policies: described(
        listOf(text({ max: 256 }), { min: 1, max: maxNamedPolicies }),
        "Ask these policies by id, instead of all that match.",
      ),
      details: described(boolean, "Also answer for every limit, not only for the one that speaks.", { default: false }),
    },
  ),
  (check, reading) =>
    check.cost === 0 && check.preview !== true
      ? reading.problem(`must be a whole number from 1 to ${maxCost}; 0 is for previews`, "cost")
      : check,
);

/** A batch. Its checks are read one by one, so that a bad one spoils no other. */
export const batchShape: Shape<{ readonly checks: readonly unknown[] }> = objectOf({
  checks: listOf(
    { name: "a check", schema: checkShape.schema, read: (value: unknown) => value } satisfies Shape<unknown>,
    { min: 1, max: maxChecks },
  ),
});

export function isBatch(body: unknown): boolean {
  return typeof body === "object" && body !== null && Object.hasOwn(body, "checks");
}
