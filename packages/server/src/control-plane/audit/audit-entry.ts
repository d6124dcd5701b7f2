import type { AuditRecord } from "@sluice/sql";
import type { Actor } from "../../data-plane/access/actor.ts";
import { makeTimedId } from "./make-id.ts";

/** What is done, and to what. */
export interface Deed {
  /** `policy.put`, `kill_switch.on`, … */
  readonly action: string;
  readonly kind: string;
  readonly target: string;
}

/** What else an entry says. */
export interface AuditDetails {
  readonly outcome: AuditRecord["outcome"];
  readonly why: string;
  /** Made JSON; undefined where there was nothing before or is nothing now. */
  readonly before?: unknown;
  readonly after?: unknown;
  readonly generation?: number | undefined;
}

const maxWhyLength = 4_096;
/** Of a dimension and its value at their longest: by it, what happened to a subject is found. */
const maxTargetLength = 64 + 1 + 4_096;
const maxStateLength = 1_000_000;

/** An entry of the audit. Nothing that a caller says makes it longer than what the store should hold. */
export function auditEntry(actor: Actor, deed: Deed, details: AuditDetails, atMs: number): AuditRecord {
  return {
    id: makeTimedId(atMs),
    atMs,
    actor: actor.caller.name,
    role: actor.caller.role ?? "",
    from: actor.from,
    action: deed.action,
    kind: deed.kind,
    target: deed.target.slice(0, maxTargetLength),
    outcome: details.outcome,
    why: details.why.slice(0, maxWhyLength),
    before: renderState(details.before),
    after: renderState(details.after),
    generation: details.generation,
  };
}

function renderState(state: unknown): string | undefined {
  if (state === undefined) return undefined;
  const text = JSON.stringify(state);
  return text.length <= maxStateLength ? text : JSON.stringify({ left_out: `${text.length} characters` });
}

/** The target of what is done to a subject: by it, the audit of one subject is found. */
export function subjectTarget(dimension: string, value: string): string {
  return `${dimension}:${value}`;
}

/** What Sluice does by itself. */
export const sluiceItself: Actor = {
  caller: { name: "sluice", may: new Set(["check", "read", "edit", "operate", "administer"]) },
  from: "",
};
