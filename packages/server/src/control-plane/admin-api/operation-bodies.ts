import type { AuditRecord } from "@sluice/sql";
import type { KillSwitchView, NodeView, TokenView } from "../control-plane.ts";
import type { Body } from "./answer.ts";

export function killSwitchBody(killSwitch: KillSwitchView): Body {
  return {
    mode: killSwitch.mode,
    since_ms: killSwitch.sinceMs,
    until_ms: killSwitch.untilMs,
    reason: killSwitch.reason,
    author: killSwitch.author,
  };
}

export function auditBody(record: AuditRecord): Body {
  return {
    id: record.id,
    at_ms: record.atMs,
    actor: record.actor,
    role: record.role,
    from: record.from,
    action: record.action,
    kind: record.kind,
    target: record.target,
    outcome: record.outcome,
    why: record.why,
    before: parsed(record.before),
    after: parsed(record.after),
    generation: record.generation,
  };
}

/** What is kept as JSON; what is not, as it is. */
function parsed(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function tokenBody(token: TokenView): Body {
  return {
    id: token.id,
    name: token.name,
    role: token.role,
    team: token.team,
    created_ms: token.createdMs,
    created_by: token.createdBy,
    expires_ms: token.expiresMs,
    revoked_ms: token.revokedMs,
    last_used_ms: token.lastUsedMs,
  };
}

export function nodeBody(node: NodeView): Body {
  return {
    id: node.id,
    name: node.name,
    version: node.version,
    started_ms: node.startedMs,
    seen_ms: node.seenMs,
    alive: node.alive,
    generation: node.generation,
    applied_ms: node.appliedMs,
    current: node.current,
    details: node.details,
  };
}
