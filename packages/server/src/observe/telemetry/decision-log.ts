import type { CheckRequest, Decision } from "sluice";
import type { LogLevel } from "../../settings/observe-settings.ts";
import type { Logger } from "./logger.ts";

export interface DecisionLogOptions {
  readonly log: Pick<Logger, "debug">;
  readonly level: LogLevel;
  /** Share of decisions that are logged, 0 … 1. */
  readonly sample: number;
  /** 0 … 1. */
  readonly random?: () => number;
  readonly nowMs?: () => number;
}

/**
 * The most decisions logged in a second, and the most characters of their dimensions: logs are for reading, not for
 * counting.
 */
const linesPerSecond = 1_000;
const charactersPerSecond = 262_144;

/**
 * Logs single decisions: subject, remainder and reason. Undefined if the line would not be written, so that it costs
 * nothing then.
 */
export function createDecisionLog(
  options: DecisionLogOptions,
): ((request: CheckRequest, decision: Decision) => void) | undefined {
  const { log, level, sample, random = Math.random, nowMs = (): number => performance.now() } = options;
  if ((level !== "debug" && level !== "trace") || sample <= 0) return undefined;
  let beganMs = -Infinity;
  let lines = 0;
  let characters = 0;
  let leftOut = 0;
  return (request, decision) => {
    if (sample < 1 && random() >= sample) return;
    const atMs = nowMs();
    if (atMs - beganMs >= 1_000) {
      beganMs = atMs;
      lines = 0;
      characters = 0;
    }
    if (lines >= linesPerSecond || characters >= charactersPerSecond) {
      leftOut += 1;
      return;
    }
    lines += 1;
    characters += countCharacters(request);
    const fields = { ...renderFields(request, decision), ...(leftOut > 0 && { leftOut }) };
    leftOut = 0;
    log.debug(decision.allowed ? "check.allowed" : "check.denied", fields);
  };
}

function countCharacters({ dimensions = {} }: CheckRequest): number {
  let characters = 0;
  for (const name in dimensions) characters += name.length + (dimensions[name]?.length ?? 0);
  return characters;
}

/** Leaves out what was not asked or does not apply. `logHashSubjects` hides `dimensions`. */
function renderFields(request: CheckRequest, decision: Decision): Readonly<Record<string, unknown>> {
  const { reason, policy, version, scope, cost, used, limit, remaining, retryAfterMs, degraded } = decision;
  return {
    domain: request.domain ?? "default",
    dimensions: request.dimensions ?? {},
    reason,
    policy,
    version,
    scope,
    cost,
    used,
    limit,
    remaining,
    retryAfterMs,
    degraded,
    ...(decision.state !== "normal" && { state: decision.state }),
    ...(decision.preview && { preview: true }),
    ...(decision.replayed && { replayed: true }),
    ...(decision.shadow.length > 0 && { shadow: decision.shadow.map((one) => one.policy) }),
  };
}
