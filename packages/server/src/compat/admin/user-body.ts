import { renderWindow } from "sluice";
import { type Body, changeBody } from "../../control-plane/admin-api/answer.ts";
import type {
  ChangedSubject,
  EffectiveLimit,
  SubjectLimitView,
  SubjectView,
} from "../../control-plane/control-plane.ts";
import { readWindows } from "../../control-plane/documents/read-documents.ts";
import { freeTier } from "./read-rules.ts";

/** What limits a user: an entry for each window, with where its numbers come from. */
export function userBody({ value, tier, version, effective }: SubjectView): Body {
  return { user_id: value, tier: tier ?? freeTier, version, limits: effective.flatMap(limitBodies) };
}

/** With what a change came to, and what it took the place of: a tier, or an override. */
export function userChangeBody(changed: ChangedSubject<SubjectView>): Body {
  const { replaced } = changed;
  const [limit] = replaced?.limits ?? [];
  return {
    ...userBody(changed.value),
    ...changeBody(changed),
    replaced: limit === undefined ? replaced && { tier: replaced.tier } : overrideBody(limit),
  };
}

function overrideBody({ policy, windows, untilMs, reason, author }: SubjectLimitView): Body {
  const read = readWindows(windows.map((text) => (text.startsWith("{") ? JSON.parse(text) : text)));
  return {
    rule_id: policy,
    // What another version of Sluice wrote and this one cannot read is told as it is.
    windows: read.problems.length > 0 ? windows : read.windows.map(renderWindow),
    expires_at: untilMs === undefined ? undefined : new Date(untilMs).toISOString(),
    reason,
    author,
  };
}

function limitBodies({
  policy,
  limit: scope,
  algorithm,
  windows,
  source,
  mode,
  usage,
}: EffectiveLimit): readonly Body[] {
  return windows.map((window, index): Body => {
    const stand = usage?.[index];
    return {
      rule_id: policy,
      scope,
      algorithm,
      limit: window.limit,
      window_seconds: window.per.kind === "ms" ? window.per.ms / 1_000 : undefined,
      burst: window.burst,
      window: renderWindow(window),
      source: source.kind,
      tier: source.kind === "tier" ? source.tier : undefined,
      expires_at: source.kind === "override" ? new Date(source.untilMs).toISOString() : undefined,
      shadow: mode === "shadow" ? true : undefined,
      used: stand?.used,
      remaining: stand?.remaining,
      reset_after_seconds: stand === undefined ? undefined : secondsOf(stand.resetAfterMs),
    };
  });
}

/** Rounded up; undefined where it never comes. */
function secondsOf(ms: number): number | undefined {
  return Number.isFinite(ms) ? Math.ceil(ms / 1_000) : undefined;
}
