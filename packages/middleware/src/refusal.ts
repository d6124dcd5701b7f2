import type { SluiceError } from "sluice";
import { type ProblemBody, renderPath } from "sluice/internal";

/** The answer to a request that is itself invalid, as `application/problem+json`. */
export interface BadRequestBody {
  readonly type: "about:blank";
  readonly title: "Bad Request";
  readonly status: 400;
  readonly code: "invalid_request";
  readonly detail: string;
  readonly problems: readonly { readonly field: string; readonly message: string }[];
}

export type RefusalBody = ProblemBody | BadRequestBody;

export const problemType = "application/problem+json";

const maxListed = 20;
const maxTextLength = 1000;

export function badRequestBody({ message, problems }: SluiceError): BadRequestBody {
  return {
    type: "about:blank",
    title: "Bad Request",
    status: 400,
    code: "invalid_request",
    detail: message.slice(0, maxTextLength),
    problems: problems.slice(0, maxListed).map((problem) => ({
      field: renderPath(problem.path).slice(0, maxTextLength),
      message: problem.message.slice(0, maxTextLength),
    })),
  };
}
