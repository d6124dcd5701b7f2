import type { PolicyDiff, RolloutView, RolloutViewWait, StoredPolicy, StoredVersion } from "../control-plane.ts";
import type { ComparedFigures, RolloutFigures } from "../rollouts/rollout-figures.ts";
import type { Body } from "./answer.ts";

/** A policy as it is now. What is undefined is left out, here and in the other bodies. */
export function storedPolicyBody(policy: StoredPolicy): Body {
  return {
    id: policy.id,
    version: policy.version,
    document: policy.document,
    owner: policy.owner,
    author: policy.author,
    why: policy.why,
    changed_ms: policy.changedMs,
    rollout: policy.rollout === undefined ? undefined : rolloutBody(policy.rollout),
    overridden_by: policy.overriddenBy,
  };
}

export function storedVersionBody(version: StoredVersion): Body {
  return {
    policy: version.policy,
    version: version.version,
    document: version.document,
    deleted: version.document === undefined,
    author: version.author,
    why: version.why,
    at_ms: version.atMs,
    revert_of: version.revertOf,
    current: version.current,
    rollout: version.rollout,
  };
}

export function policyDiffBody({ policy, from, to, changes, text }: PolicyDiff): Body {
  return { policy, from, to, changes, text };
}

export function rolloutBody(rollout: RolloutView): Body {
  return {
    id: rollout.id,
    policy: rollout.policy,
    from_version: rollout.fromVersion,
    to_version: rollout.toVersion,
    state: rollout.state,
    percent: rollout.percent,
    shadow: rollout.shadow,
    by: rollout.by,
    steps: rollout.steps.map(({ percent, holdMs }) => ({ percent, hold_ms: holdMs })),
    step: rollout.step,
    step_since_ms: rollout.stepSinceMs,
    starts_ms: rollout.startsMs,
    observe_for_ms: rollout.observeForMs,
    expect_more_denials: rollout.expectMoreDenials,
    strikes: rollout.strikes,
    waits_for: rollout.waitsFor === undefined ? undefined : waitBody(rollout.waitsFor),
    figures: rollout.figures === undefined ? undefined : figuresBody(rollout.figures),
    reason: rollout.reason,
    author: rollout.author,
    created_ms: rollout.createdMs,
    changed_ms: rollout.changedMs,
  };
}

/** A code, and its numbers in `snake_case`. */
function waitBody(wait: RolloutViewWait): Body {
  const toSnakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(wait).map(([name, value]) => [toSnakeCase(name), value]));
}

function figuresBody(figures: RolloutFigures): Body {
  return {
    minute: figures.minute,
    minutes: figures.minutes,
    verdict: figures.verdict,
    because: figures.because,
    sentence: figures.sentence,
    looks: figures.looks,
    strikes: figures.strikes,
    total: comparedBody(figures.total),
    rings: figures.rings.map((ring) => ({ step: ring.step, judged: ring.judged, ...comparedBody(ring) })),
  };
}

function comparedBody(figures: ComparedFigures): Body {
  return {
    decided: figures.decided,
    denied: figures.denied,
    rate: figures.rate,
    baseline: figures.baseline,
    baseline_minutes: figures.baselineMinutes,
    baseline_decided: figures.baselineDecided,
    others: figures.others,
    sigma: figures.sigma,
    threshold: figures.threshold,
  };
}
