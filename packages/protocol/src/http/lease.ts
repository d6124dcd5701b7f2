import type { Decision } from "sluice";
import { type BodyOf, described, fromView, integer } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { decision } from "./decision.ts";

interface LeaseView {
  readonly granted: number;
  readonly epoch: number;
  readonly unspent: number;
  readonly forgotten: number;
  readonly leaseMs: number;
  readonly staleMs: number;
  readonly decision: Decision;
}

/** Units of cost that a client may spend on its own. */
export const lease = fromView(
  objectOf({
    granted: described(
      integer,
      "Units that may be spent, in addition to those kept. 0: refused for now, or not wanted.",
    ),
    epoch: described(integer, "Identifies this grant, and what was kept, for settled."),
    unspent: described(integer, "Granted and unspent of this counter, on all clients together."),
    forgotten: optional(
      described(
        integer,
        "Units reported as kept that were never granted, or are forgotten: not to be spent. Absent: none.",
      ),
    ),
    lease_ms: described(
      integer,
      "How long after the call began the units are spent; then they are renewed, or given back.",
    ),
    stale_ms: described(integer, "How much longer while no server answers."),
    cost: described(integer, "What a check like this costs, unless it names another cost."),
    decision,
  }),
  (view: LeaseView) => ({
    ...view,
    forgotten: view.forgotten > 0 ? view.forgotten : undefined,
    cost: view.decision.cost,
  }),
);
export type LeaseBody = BodyOf<typeof lease>;
