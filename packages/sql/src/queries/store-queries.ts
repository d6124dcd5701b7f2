import type { StoreChange, StoreNote, StoreView } from "../policy-store.ts";
import type { Session } from "../transact.ts";
import { createUsageNote } from "./add-usage.ts";
import { createAuditNote, createAuditView } from "./audit.ts";
import { createDenialNote, createDenialView } from "./denials.ts";
import { createExceptionChange, createExceptionView } from "./exceptions.ts";
import { createKnownSubjectsView } from "./known-subjects.ts";
import { createNodeNote, createNodeView } from "./nodes.ts";
import { createPolicyChange, createPolicyView } from "./policies.ts";
import { createPulseChange, createPulseView } from "./pulse.ts";
import { createUsageUpkeep } from "./roll-up-usage.ts";
import { createRolloutChange, createRolloutView, createTallyNote } from "./rollouts.ts";
import { createSubjectChange, createSubjectView } from "./subjects.ts";
import { createTokenChange, createTokenNote, createTokenView } from "./tokens.ts";
import { createUsageTopsView } from "./usage-tops.ts";
import { createUsageView } from "./usage-view.ts";

/** The reads available in every transaction. */
export function createStoreView(session: Session): StoreView {
  return {
    ...createPulseView(session),
    ...createPolicyView(session),
    ...createRolloutView(session),
    ...createSubjectView(session),
    ...createExceptionView(session),
    ...createTokenView(session),
    ...createAuditView(session),
    ...createNodeView(session),
    ...createUsageView(session),
    ...createUsageTopsView(session),
    ...createKnownSubjectsView(session),
    ...createDenialView(session),
  };
}

/** The writes that run alongside changes. */
export function createStoreNote(session: Session): StoreNote {
  return {
    ...createStoreView(session),
    ...createTallyNote(session),
    ...createTokenNote(session),
    ...createAuditNote(session),
    ...createNodeNote(session),
    ...createUsageNote(session),
    ...createUsageUpkeep(session),
    ...createDenialNote(session),
  };
}

/**
 * The writes available in a change. No other change runs at the same time, so a query finds out whether a name is taken
 * before the write: a failed statement would undo everything before it. Indexes enforce the same for writers outside of
 * Sluice.
 */
export function createStoreChange(session: Session): StoreChange {
  return {
    ...createStoreNote(session),
    ...createPulseChange(session),
    ...createPolicyChange(session),
    ...createRolloutChange(session),
    ...createSubjectChange(session),
    ...createExceptionChange(session),
    ...createTokenChange(session),
  };
}
