import { lease as leaseBody } from "@sluice/protocol/http";
import { described, integer, objectOf, parseShape, refine, type Shape } from "sluice/shape";
import type { SettledGrant } from "sluice/store";
import { maxHoldMs } from "sluice/store";
import { type AskedLease, type LeasedCheck, maxWant } from "../../../service/lease.ts";
import { resetShape } from "../check-body.ts";

import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

const units = (description: string): Shape<number> =>
  described(integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), description, { default: 0 });

const settled: Shape<SettledGrant> = refine(
  objectOf(
    { epoch: described(integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), "The grant's epoch.") },
    {
      spent: units("Units spent by decisions."),
      kept: units("Still held: moves to the answer's epoch and times."),
      returned: units("Given back to the counters."),
    },
  ),
  ({ epoch, spent = 0, kept = 0, returned = 0 }) => ({ epoch, spent, kept, returned }),
);

interface LeaseBody extends AskedLease {
  readonly check: LeasedCheck;
}

/** The body of a lease: whose counters, how much, and what became of the last grant. */
export const leaseShape: Shape<LeaseBody> = refine(
  objectOf(
    { check: described(resetShape, "Which counters: those that a check like this is counted in.") },
    {
      want: described(
        integer({ min: 0, max: maxWant }),
        "How many units of cost are wanted. 0 only settles an earlier grant.",
        { default: 0 },
      ),
      hold_ms: described(
        integer({ min: 1, max: maxHoldMs }),
        "How long it may be spent at most. Absent: the server decides.",
      ),
      settled: described(settled, "What became of the last grant: each unit at most once."),
    },
  ),
  ({ check, want = 0, hold_ms: holdMs, settled }) => ({ check, want, holdMs, settled }),
);

/** POST /v1/lease: takes units at once, to be spent by the client; renews them, and takes back what is left. */
export async function lease(request: HttpRequest, context: HttpContext): Promise<HttpResponse> {
  const { check, ...asked } = parseShape(leaseShape, request.body, "invalid_request", "the body");
  return { status: 200, body: leaseBody.render(await context.lease(check, asked, request.caller)) };
}
