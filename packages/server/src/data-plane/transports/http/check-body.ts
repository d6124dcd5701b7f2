import type { CheckRequest } from "sluice";
import {
  maxCost,
  maxDeadlineMs,
  maxDimensionLength,
  maxDimensions,
  maxIdLength,
  maxIdTtlMs,
  maxNamedPolicies,
  maxNameLength,
} from "sluice/internal";
import { boolean, described, integer, listOf, mapOf, objectOf, refine, type Shape, text } from "sluice/shape";
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
  "Who is asking for what, by name: user, tenant, ip, endpoint, method, or names of your own.",
  { examples: [{ user: "u1", endpoint: "/v1/orders", method: "GET" }] },
);
const domain = described(text({ max: maxNameLength }), "The family of policies to ask.", { default: "default" });
const policies = described(
  listOf(text({ max: 256 }), { min: 1, max: maxNamedPolicies }),
  "Ask these policies by id, instead of all that match.",
);

const id = described(text({ max: maxIdLength }), "Charged once, however often it is sent. Choose it yourself.");
const details = described(boolean, "Also answer for every limit, not only for the deciding one.", { default: false });
const deadline = described(
  integer({ min: 1, max: maxDeadlineMs }),
  "How long you wait at most for remote counters; after that the policy's on_failure decides.",
);

/** What a request that holds an amount has in common with a check. */
export const reserveFields: {
  readonly dimensions: Shape<Readonly<Record<string, string>>>;
  readonly domain: Shape<string>;
  readonly policies: Shape<readonly string[]>;
  readonly id: Shape<string>;
  readonly details: Shape<boolean>;
  readonly deadline_ms: Shape<number>;
} = { dimensions, domain, policies, id, details, deadline_ms: deadline };

/** The body of a check. */
export const checkShape: Shape<CheckRequest> = refine(
  objectOf(
    {},
    {
      dimensions,
      cost: described(
        integer({ min: 0, max: maxCost }),
        "The cost of the request. Absent: the policy's, else 1. 0 only in a preview.",
      ),
      domain,
      id,
      id_ttl_ms: described(integer({ min: 1, max: maxIdTtlMs }), "How long the id is remembered.", {
        default: 600_000,
      }),
      preview: described(boolean, "Decide without taking.", { default: false }),
      policies,
      details,
      receipt: described(boolean, "Also answer with a receipt, which can be used to give the take back.", {
        default: false,
      }),
      deadline_ms: deadline,
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
        cost === 0 ? reading.problem(`must not be 0: that charges nothing`) : cost,
      ),
      "What to take, or below 0 to give back. Absent: the policy's cost, else 1.",
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
