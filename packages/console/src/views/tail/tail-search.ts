import { oneOf, type Search, textParam } from "../../url/search-params.ts";

export const tailAnswers = ["all", "denied", "allowed"] as const;
export type TailAnswer = (typeof tailAnswers)[number];

export interface TailSearch {
  readonly policy?: string | undefined;
  readonly dimension?: string | undefined;
  readonly subject?: string | undefined;
  readonly answer?: TailAnswer | undefined;
}

export function parseTailSearch({ policy, dimension, subject, answer }: Search): TailSearch {
  const only = oneOf(answer, tailAnswers, "all");
  return {
    policy: textParam(policy),
    dimension: textParam(dimension),
    subject: textParam(subject),
    answer: only === "all" ? undefined : only,
  };
}
