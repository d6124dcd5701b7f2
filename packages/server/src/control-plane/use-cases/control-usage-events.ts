import { SluiceError } from "sluice";
import { type Caller, demand } from "../../data-plane/access/access.ts";
import type { UsageEvent } from "../../observe/usage-events/usage-event.ts";
import { cursorPattern } from "../../observe/usage-events/usage-tail.ts";
import { invalidField } from "../control-errors.ts";
import type { UsageControl } from "../usage-control.ts";
import { auditRefusals } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";

/** Reads the latest usage events of this node. Needs no policy store. */
export function createUsageTail(context: ControlContext): UsageControl["tail"] {
  return async (actor, { after, waitMs, policy, subject }) => {
    const audited = { action: "usage.tail", kind: "usage", target: "" };
    await auditRefusals(context, actor, audited, async () => demand(actor.caller, "read"));
    if (after !== undefined && !cursorPattern.test(after))
      throw invalidField(["after"], "must be `next` of the previous answer");
    const { usageTail } = context;
    if (usageTail === undefined)
      throw new SluiceError(
        "resource_not_found",
        "this server runs several workers, and usage events can be watched only on one that runs a single process; send them to a sink with --usage-events instead",
      );
    const mayShow = showsOwned(actor.caller, context);
    const isShown = (event: UsageEvent): boolean =>
      (policy === undefined || event.data.policy === policy) &&
      (subject === undefined || event.subject === subject || event.data.key === subject) &&
      mayShow(event);
    return usageTail.read({ after, waitMs, isShown });
  };
}

/** An editor sees the events of its team's policies, as with stored usage; others see all. */
function showsOwned({ role, team = "" }: Caller, { limiter }: ControlContext): (event: UsageEvent) => boolean {
  if (role !== "editor") return () => true;
  if (team === "") return () => false;
  let known: ControlContext["limiter"]["snapshot"] | undefined;
  let owned: ReadonlySet<string> = new Set();
  return ({ data }) => {
    const { snapshot } = limiter;
    if (snapshot !== known) {
      const { policies } = snapshot.policySet;
      const others = new Set(policies.filter(({ owner }) => owner !== team).map(({ id }) => id));
      owned = new Set(policies.map(({ id }) => id).filter((id) => !others.has(id)));
      known = snapshot;
    }
    return data.policy !== undefined && owned.has(data.policy);
  };
}
