import { windowBody } from "../../data-plane/transports/http/policy-body.ts";
import type { ChangedSubject, EffectiveLimit, SubjectView } from "../control-plane.ts";
import { subjectBody, subjectLimitBody } from "../documents/subject-body.ts";
import { type Body, changeBody } from "./answer.ts";

/** What a change of a subject came to, with what it replaced. */
export function subjectChangeBody(changed: ChangedSubject<unknown>): Body {
  const { replaced, inPlaceOf } = changed;
  return {
    ...changeBody(changed),
    replaced: replaced && { tier: replaced.tier, limits: replaced.limits.map(subjectLimitBody) },
    in_place_of: inPlaceOf?.map((limit) => effectiveLimitBody({ ...limit, usage: undefined })),
  };
}

/** With every limit that it has, and where each comes from. */
export function subjectViewBody(subject: SubjectView): Body {
  return { ...subjectBody(subject), effective: subject.effective.map(effectiveLimitBody) };
}

/** How the counters of a subject stand, of those limits that it alone tells. */
export function usageBody({ dimension, value, effective }: SubjectView): Body {
  const counted = effective.map(effectiveLimitBody).filter(({ usage }) => usage !== undefined);
  return { dimension, value, limits: counted };
}

function effectiveLimitBody(limit: EffectiveLimit): Body {
  return {
    policy: limit.policy,
    version: limit.version,
    limit: limit.limit,
    by: limit.by,
    algorithm: limit.algorithm,
    windows: limit.windows.map(windowBody),
    source: sourceBody(limit.source),
    mode: limit.mode,
    usage: limit.usage?.map(({ window, used, remaining, resetAfterMs }) => ({
      window: windowBody(window),
      used,
      remaining,
      reset_after_ms: Number.isFinite(resetAfterMs) ? resetAfterMs : undefined,
    })),
  };
}

function sourceBody(source: EffectiveLimit["source"]): Body {
  return source.kind === "override" ? { kind: source.kind, until_ms: source.untilMs } : source;
}
