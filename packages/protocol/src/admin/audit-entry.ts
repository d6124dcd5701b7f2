import {
  anything,
  type BodyOf,
  type BodyShape,
  choice,
  epochMs,
  fromView,
  integer,
  text,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { pageShape } from "./page.ts";

/** What the audit has entries about. The first part of each action is one of them: `policy.put`. */
export const auditKinds = [
  "policy",
  "plan",
  "rollout",
  "subject",
  "token",
  "kill_switch",
  "configuration",
  "audit",
  "node",
  "hot_key",
  "usage",
  "denial",
  "session",
  "live",
  "recording",
  "simulation",
  "server",
] as const;

/** A value stored as JSON; a text that is not JSON is returned unchanged. */
const storedJson: BodyShape<string, unknown> = fromView(anything, (kept: string) => {
  try {
    return JSON.parse(kept);
  } catch {
    return kept;
  }
});

/** A change, or a refused attempt. */
export const auditEntry = objectOf({
  id: text,
  at_ms: epochMs,
  actor: text,
  role: text,
  from: text,
  action: text,
  kind: text,
  target: text,
  outcome: choice(["done", "refused"]),
  why: text,
  before: optional(storedJson),
  after: optional(storedJson),
  generation: optional(integer),
});
export type AuditEntryBody = BodyOf<typeof auditEntry>;

export const auditPage = pageShape(auditEntry);
