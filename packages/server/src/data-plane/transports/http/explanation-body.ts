import type { CheckRequest, Explanation } from "sluice";
import { type DecisionBody, decisionBody } from "./decision-body.ts";
import { type WindowBody, windowBody } from "./policy-body.ts";

/** An explanation as JSON. */
export interface ExplanationBody {
  readonly request: CheckRequest;
  readonly domain: string;
  readonly endpoint?: string | undefined;
  readonly policies: Explanation["policies"];
  readonly limits: readonly {
    readonly policy: string;
    readonly scope: string;
    readonly subject: string;
    readonly counter: string;
    readonly cost: number;
    readonly tier?: string | undefined;
    readonly missing: readonly string[];
    readonly shadow: boolean;
    readonly counted: string;
    readonly allowance: number;
    readonly windows: readonly {
      readonly window: WindowBody;
      readonly remaining: number;
      readonly reset_after_ms: number;
      readonly state: Readonly<Record<string, number>>;
      readonly arithmetic: readonly string[];
    }[];
  }[];
  readonly decision: DecisionBody;
}

export function explanationBody(explanation: Explanation): ExplanationBody {
  const { request, domain, endpoint, policies, limits, decision } = explanation;
  return {
    request,
    domain,
    endpoint,
    policies,
    limits: limits.map(({ windows, ...limit }) => ({
      ...limit,
      windows: windows.map(({ window, remaining, resetAfterMs, state, arithmetic }) => ({
        window: windowBody(window.source),
        remaining,
        reset_after_ms: resetAfterMs,
        state,
        arithmetic,
      })),
    })),
    decision: decisionBody(decision),
  };
}
