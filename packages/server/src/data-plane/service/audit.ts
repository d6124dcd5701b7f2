import type { Actor } from "../access/actor.ts";

/** What the data plane reports to the audit of the control plane. Neither call throws: what cannot be stored is logged. */
export interface Audit {
  /** Something was changed: `subject.reset`. `before` is rendered as JSON. */
  done(
    actor: Actor,
    deed: { readonly action: string; readonly kind: string; readonly target: string; readonly before?: unknown },
  ): Promise<void>;
  /** A call was refused before it reached its use case. */
  refused(actor: Actor, action: string, kind: string, target: string, why: string): void;
}
