import { PolicyStoreUnavailable } from "@sluice/sql";
import { auditEntry } from "./audit-entry.ts";
import { look } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import type { AuditControl } from "./control-plane.ts";
import { limitOf, pageOf } from "./page.ts";

const kind = "audit";

export function createAuditControl(context: ControlContext): AuditControl {
  return {
    list: (actor, query = {}) =>
      look(context, actor, { action: "audit.list", kind, target: "" }, async (view) => {
        const limit = limitOf(query);
        const records = await view.audit({ ...query, limit: limit + 1 });
        return pageOf(
          records,
          limit,
          ({ id }) => id,
          (record) => record,
        );
      }),
    async done(actor, { before, ...deed }) {
      const entry = auditEntry(actor, deed, { outcome: "done", why: "", before }, context.nowMs());
      try {
        await context.store.note((note) => note.addAudit(entry));
      } catch (error) {
        const reason = error instanceof PolicyStoreUnavailable ? error.message : String(error);
        context.log.error(
          { ...deed, caller: actor.caller.name, reason },
          "something was done, and the audit could not keep it",
        );
      }
    },
    refused: (actor, action, subject, target, why) =>
      context.refusals.add(actor, { action, kind: subject, target }, why),
  };
}
