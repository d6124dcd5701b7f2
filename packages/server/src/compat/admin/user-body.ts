import { renderWindow } from "sluice/internal";
import { type Body, changeBody } from "../../control-plane/admin-api/answer.ts";
import { readWindows } from "../../control-plane/documents/read-documents.ts";
import type {
  ChangedSubject,
  EffectiveLimit,
  SubjectLimitView,
  SubjectView,
} from "../../control-plane/subject-control.ts";
import { freeTier } from "./read-rules.ts";

/** A user's limits: an entry for each window, with the source of its numbers. */
export function userBody({ value, tier, version, effective }: SubjectView): Body {
  return { user_id: value, tier: tier ?? freeTier, version, limits: effective.flatMap(limitBodies) };
}

/** Adds the outcome of a change, and the tier or override that it replaced. */
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
    // Windows from another version of Sluice that this one cannot parse are shown as they are.
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
      reset_after_seconds: stand === undefined ? undefined : wholeSeconds(stand.resetAfterMs),
    };
  });
}

/** Rounded up; undefined if it never comes. */
function wholeSeconds(ms: number): number | undefined {
  return Number.isFinite(ms) ? Math.ceil(ms / 1_000) : undefined;
}
