import {
  boolean,
  type CheckRequest,
  described,
  integer,
  listOf,
  mapOf,
  maxCost,
  maxDeadlineMs,
  maxDimensionLength,
  maxDimensions,
  maxIdLength,
  maxIdTtlMs,
  maxNamedPolicies,
  maxNameLength,
  objectOf,
  refine,
  type Shape,
  text,
} from "sluice";
import { findIpProblem } from "../../service/find-ip-problem.ts";

export const maxChecks = 1_000;

const dimensions = described(
  refine(
    mapOf(text({ max: maxNameLength }), text({ min: 0, max: maxDimensionLength }), { max: maxDimensions }),
    (given, reading) => {
      const problem = findIpProblem(given.ip);
      return problem === undefined ? given : reading.problem(problem, "ip");
    },
  ),
  "Who asks for what, by name: user, tenant, ip, endpoint, method, or names of your own.",
  { examples: [{ user: "u1", endpoint: "/v1/orders", method: "GET" }] },
);
const domain = described(text({ max: maxNameLength }), "Which family of policies is asked.", { default: "default" });
const policies = described(
  listOf(text({ max: 256 }), { min: 1, max: maxNamedPolicies }),
  "Ask these policies by id, instead of all that match.",
);

/** The body of a check. */
export const checkShape: Shape<CheckRequest> = refine(
  objectOf(
    {},
    {
      dimensions,
      cost: described(
        integer({ min: 0, max: maxCost }),
        "What the request takes. Absent: what the policy says, else 1. 0 only in a preview.",
      ),
      domain,
      id: described(text({ max: maxIdLength }), "Charged once, however often it is sent. Choose it yourself."),
      id_ttl_ms: described(integer({ min: 1, max: maxIdTtlMs }), "How long the id is remembered.", {
        default: 600_000,
      }),
      preview: described(boolean, "Ask without taking.", { default: false }),
      policies,
      details: described(boolean, "Also answer for every limit, not only for the one that speaks.", { default: false }),
      receipt: described(boolean, "Also answer with a receipt, by which the take can be given back.", {
        default: false,
      }),
      deadline_ms: described(
        integer({ min: 1, max: maxDeadlineMs }),
        "How long you wait at most for counters elsewhere; then policies say what is answered (on_failure).",
      ),
    },
  ),
  (check, reading) => {
    if (check.cost === 0 && check.preview !== true)
      return reading.problem(`must be a whole number from 1 to ${maxCost}; 0 is for previews`, "cost");
    if (check.deadline_ms === undefined && check.id_ttl_ms === undefined) return check;
    const { deadline_ms: deadlineMs, id_ttl_ms: idTtlMs, ...rest } = check;
    return { ...rest, deadlineMs, idTtlMs };
  },
);

/** The body of a charge. */
export const chargeShape: Shape<CheckRequest> = objectOf(
  {},
  {
    dimensions,
    cost: described(
      refine(integer({ min: -maxCost, max: maxCost }), (cost, reading) =>
        cost === 0 ? reading.problem(`must not be 0: that would be no charge`) : cost,
      ),
      "What to take, or below 0 to give back. Absent: what the policy says, else 1.",
    ),
    domain,
    policies,
  },
);

/** The body of a reset. */
export const resetShape: Shape<CheckRequest> = objectOf({}, { dimensions, domain, policies });

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
