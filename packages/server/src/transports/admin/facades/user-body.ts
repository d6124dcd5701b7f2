import { renderWindow } from "sluice";
import type { EffectiveLimit, SubjectView } from "../../../control/control-plane.ts";
import type { Body } from "../answer.ts";
import { freeTier } from "./read-rules.ts";

/** What limits a user: an entry for each window, with where its numbers come from. */
export function userBody({ value, tier, version, effective }: SubjectView): Body {
  return { user_id: value, tier: tier ?? freeTier, version, limits: effective.flatMap(limitBodies) };
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
