import { PolicyStoreUnavailable } from "@sluice/sql";
import { type AuditedAction, auditEntry, subjectTarget } from "../audit/audit-entry.ts";
import type { AuditControl } from "../control-plane.ts";
import { canonicalSubject } from "../documents/canonical-subject.ts";
import { readStore } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import { parsePageLimit, renderPage } from "./page.ts";

const kind = "audit";

export function createAuditControl(context: ControlContext): AuditControl {
  return {
    list: (actor, query = {}) =>
      readStore(context, actor, { action: "audit.list", kind, target: "" }, async (view) => {
        const limit = parsePageLimit(query);
        const { target, kind: of = "subject" } = query;
        const asked = target === undefined ? query : { ...query, target: canonicalTarget(of, target) };
        const records = await view.audit({ ...asked, limit: limit + 1 });
        return renderPage(
          records,
          limit,
          ({ id }) => id,
          (record) => record,
        );
      }),
    async done(actor, { before, ...audited }) {
      const entry = auditEntry(actor, audited, { outcome: "done", why: "", before }, context.nowMs());
      try {
        await context.store.note((note) => note.addAudit(entry));
      } catch (error) {
        const reason = error instanceof PolicyStoreUnavailable ? error.message : String(error);
        context.log.error("audit.write_failed", { ...redactedAction(audited), caller: actor.caller.name, reason });
      }
    },
    refused: (actor, action, subject, target, why) =>
      context.refusals.add(actor, { action, kind: subject, target: canonicalTarget(subject, target) }, why),
  };

  /** Any spelling of a subject finds it; a target that is not a subject stays unchanged. */
  function canonicalTarget(of: string, target: string): string {
    const [, dimension, value] = (of === "subject" && /^([\w.-]+):(.+)$/s.exec(target)) || [];
    if (dimension === undefined || value === undefined) return target;
    return subjectTarget(dimension, canonicalSubject(dimension, value, context.ipv6PrefixBits));
  }
}

/** With a subject under the name by which logs hide it, if that is configured. */
function redactedAction({ action, kind, target }: AuditedAction): Readonly<Record<string, unknown>> {
  if (kind !== "subject") return { action, kind, target };
  const colon = target.indexOf(":");
  return { action, dimensions: colon < 0 ? {} : { [target.slice(0, colon)]: target.slice(colon + 1) } };
}
