import { type ChangeBody, type ChangeView, change } from "@sluice/protocol/admin";
import type { ProblemBody } from "@sluice/protocol/http";
import type { Problem } from "sluice";
import { tellProblems } from "../../data-plane/service/tell-error.ts";
import type { HttpResponse } from "../../data-plane/transports/http/exchange.ts";
import type { Changed, Listed } from "../control-plane.ts";

export type Body = Readonly<Record<string, unknown>>;

/** A version as an ETag. */
export function etagOf(version: number): string {
  return `"${version}"`;
}

/** Something that is there, at a version. */
export function answerVersion(body: Body, version: number): HttpResponse {
  return { status: 200, headers: { etag: etagOf(version) }, body };
}

/** A part of a list, and where the next one is. */
export function answerPage<T>({ items, next }: Listed<T>, render: (item: T) => unknown, url: string): HttpResponse {
  return {
    status: 200,
    ...(next !== undefined && { headers: { link: `<${nextUrl(url, next)}>; rel="next"` } }),
    body: { items: items.map(render), next },
  };
}

function nextUrl(url: string, next: string): string {
  const [path = "", query = ""] = url.split("?", 2);
  const parameters = new URLSearchParams(query);
  parameters.set("after", next);
  return `${path}?${parameters}`;
}

/** What a change came to, for bodies that hold what was changed as well. */
export function changeView({ generation, dryRun, warnings }: Omit<Changed<unknown>, "value">): ChangeView {
  return { dryRun, generation, warnings: problemBodies(warnings) };
}

/** What a change came to. */
export function changeBody(changed: Omit<Changed<unknown>, "value">): ChangeBody {
  return change.render(changeView(changed));
}

/** Most problems and warnings that one answer lists. */
const maxProblems = 100;

export function problemBodies(problems: readonly Problem[]): readonly ProblemBody[] {
  return tellProblems(problems, maxProblems);
}
