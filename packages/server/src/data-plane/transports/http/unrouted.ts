import { errorResponse, renderErrorBody } from "./errors.ts";
import type { HttpResponse } from "./exchange.ts";
import type { Route } from "./route.ts";

export const withoutHost: HttpResponse = errorResponse(
  renderErrorBody(400, "invalid_request", "the Host header is missing, which every HTTP/1.1 request must have"),
);

export const unexpected: HttpResponse = errorResponse(
  renderErrorBody(417, "invalid_request", "the only supported Expect is 100-continue"),
);

/** The most paths named in the answer to an unknown one. */
const maxNamedPaths = 30;

/** Answers a request to an unknown path, or with a method that the path does not support. */
export function answerUnrouted(
  byMethod: ReadonlyMap<string, unknown> | undefined,
  routes: readonly Pick<Route, "path">[],
): HttpResponse {
  if (byMethod === undefined) {
    const paths = [...new Set(routes.map((route) => route.path))];
    const there =
      paths.length > maxNamedPaths ? "GET /openapi.json lists what there is" : `there is ${paths.join(", ")}`;
    return errorResponse(renderErrorBody(404, "not_found", `there is nothing at this path; ${there}`));
  }
  const allow = [...byMethod.keys()].join(", ");
  return errorResponse(renderErrorBody(405, "not_found", `this path answers ${allow} only`), { allow });
}
