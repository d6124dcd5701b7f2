import type { DecisionBody, WindowBody } from "@sluice/protocol/http";
import { printable, renderDuration } from "sluice/internal";

/** A decision for people, on a few lines. */
export function renderDecision(decision: DecisionBody): string {
  const lines = [`${decision.allowed ? "allowed" : "DENIED "}  ${renderReason(decision)}`];
  const notes = renderNotes(decision);
  if (notes.length > 0) lines.push(`         ${notes.join("; ")}`);
  for (const { policy, scope, reason } of decision.shadow ?? [])
    lines.push(`         in shadow, ${policy}${scope === undefined ? "" : ` (${scope})`} would have denied: ${reason}`);
  for (const one of decision.limits ?? []) {
    const verdict = one.allowed ? "has room" : one.reason;
    lines.push(`         · ${one.policy} (${one.scope}) ${verdict}: ${one.remaining} of ${one.limit} left`);
  }
  return `${lines.map(printable).join("\n")}\n`;
}

function renderReason(decision: DecisionBody): string {
  const { policy, scope, cost, window } = decision;
  const by = policy === undefined ? "no policy" : `${policy}${scope === undefined ? "" : ` (${scope})`}`;
  const allows = window === undefined ? by : `${by} allows ${renderWindow(window)}`;
  switch (decision.reason) {
    case "within_limits":
      return `${renderLeft(decision)}; ${allows}`;
    case "unlimited":
      return `${by} limits this`;
    case "over_limit":
      return `${allows}; ${renderLeft(decision)}, and this costs ${cost}`;
    case "never_fits":
      return `${allows}, and this costs ${cost}: it never fits`;
    case "blocked":
      return `${by} keeps this subject out for a while`;
    case "deny_list":
      return `${by} denies this subject by name`;
    case "missing_dimension":
      return `${by} needs a dimension that this request lacks`;
    case "degraded":
      return `the counters could not be asked: ${decision.degraded}`;
  }
}

/** What is left of the window that speaks; and of all, where another window or limit has less. */
function renderLeft({ limit = 0, used = 0, remaining = 0 }: DecisionBody): string {
  const left = Math.floor(limit) - used;
  return `${left} of ${limit} left${remaining < left ? `, ${remaining} over all limits` : ""}`;
}

function renderNotes(decision: DecisionBody): readonly string[] {
  const notes: string[] = [];
  if (decision.retry_after_ms !== undefined) notes.push(`try again in ${renderWait(decision.retry_after_ms)}`);
  else if (decision.reason === "never_fits") notes.push("waiting does not help");
  if (decision.allowed && (decision.reset_after_ms ?? 0) > 0)
    notes.push(`as good as new in ${renderWait(decision.reset_after_ms!)}`);
  if (decision.queue !== undefined)
    notes.push(`place ${decision.queue.position} in the queue, ${renderWait(decision.queue.delay_ms)} from its front`);
  if (decision.state !== "normal") notes.push(`state ${decision.state}`);
  if (decision.replayed) notes.push("decided before under this id, not charged again");
  if (decision.preview) notes.push("a preview: nothing was taken");
  return notes;
}

function renderWindow({ limit, per, burst }: WindowBody): string {
  if (per === "never") return `${limit} in all`;
  const length = typeof per === "string" ? per : `calendar ${per.calendar} in ${per.time_zone}`;
  return `${limit} per ${length}${burst === undefined || burst === limit ? "" : `, ${burst} at once`}`;
}

/** Long waits in whole seconds: the milliseconds of a minute do not matter. */
function renderWait(ms: number): string {
  return ms < 10_000 ? renderDuration(ms) : renderDuration(Math.ceil(ms / 1000) * 1000);
}
