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
import { pageOf } from "./page.ts";

/** What is kept as JSON; a text that is none, as it is. */
const keptJson: BodyShape<string, unknown> = fromView(anything, (kept: string) => {
  try {
    return JSON.parse(kept);
  } catch {
    return kept;
  }
});

/** Who changed what, or was refused. */
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
  before: optional(keptJson),
  after: optional(keptJson),
  generation: optional(integer),
});
export type AuditEntryBody = BodyOf<typeof auditEntry>;

export const auditPage = pageOf(auditEntry);
