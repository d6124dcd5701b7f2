import type { AuditRecord } from "@sluice/sql";
import type { Actor } from "../../data-plane/access/actor.ts";
import { makeTimedId } from "./make-id.ts";

/** An action and its target. */
export interface AuditedAction {
  /** `policy.put`, `kill_switch.on`, … */
  readonly action: string;
  readonly kind: string;
  readonly target: string;
}

/** The rest of an entry. */
export interface AuditDetails {
  readonly outcome: AuditRecord["outcome"];
  readonly why: string;
  /** Becomes JSON; undefined if there was nothing before or is nothing afterwards. */
  readonly before?: unknown;
  readonly after?: unknown;
  readonly generation?: number | undefined;
}

const maxReasonLength = 4_096;
/** Fits the longest dimension and value, so that the history of any subject can be found. */
const maxTargetLength = 64 + 1 + 4_096;
const maxStateLength = 1_000_000;

/** An entry of the audit. No input from a caller makes it longer than the store should hold. */
export function auditEntry(actor: Actor, audited: AuditedAction, details: AuditDetails, atMs: number): AuditRecord {
  return {
    id: makeTimedId(atMs),
    atMs,
    actor: actor.caller.name,
    role: actor.caller.role ?? "",
    from: actor.from,
    action: audited.action,
    kind: audited.kind,
    target: audited.target.slice(0, maxTargetLength),
    outcome: details.outcome,
    why: details.why.slice(0, maxReasonLength),
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

/** The target of an action on a subject, by which the audit of one subject is found. */
export function subjectTarget(dimension: string, value: string): string {
  return `${dimension}:${value}`;
}

/** The actor of automatic actions. */
export const sluiceItself: Actor = {
  caller: { name: "sluice", may: new Set(["check", "read", "simulate", "edit", "operate", "administer"]) },
  from: "",
};
