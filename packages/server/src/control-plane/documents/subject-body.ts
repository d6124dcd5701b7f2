import type { KeptSubject, SubjectLimitView } from "../control-plane.ts";

type Body = Readonly<Record<string, unknown>>;

/** What is kept of a subject. */
export function subjectBody({ dimension, value, version, tier, limits }: KeptSubject): Body {
  return { dimension, value, version, tier, limits: limits.map(subjectLimitBody) };
}

export function subjectLimitBody(limit: SubjectLimitView): Body {
  return {
    policy: limit.policy,
    limit: limit.limit,
    windows: limit.windows,
    until_ms: limit.untilMs,
    reason: limit.reason,
    author: limit.author,
    at_ms: limit.atMs,
  };
}
