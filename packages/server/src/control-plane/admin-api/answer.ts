import { type ChangeBody, type ChangeView, change } from "@sluice/protocol/admin";
import type { ProblemBody } from "@sluice/protocol/http";
import type { Problem } from "sluice";
import { describeProblems } from "../../data-plane/service/describe-error.ts";
import type { HttpResponse } from "../../data-plane/transports/http/exchange.ts";
import type { Changed, Listed } from "../change.ts";

export type Body = Readonly<Record<string, unknown>>;

/** Renders a version as an ETag. */
export function renderEtag(version: number): string {
  return `"${version}"`;
}

/** An existing object, at a version. */
export function answerVersion(body: Body, version: number): HttpResponse {
  return { status: 200, headers: { etag: renderEtag(version) }, body };
}

/** A page of a list, with a link to the next one. */
export function answerPage<T>({ items, next }: Listed<T>, render: (item: T) => unknown, url: string): HttpResponse {
  return {
    status: 200,
    ...(next !== undefined && { headers: { link: `<${nextUrl(url, next)}>; rel="next"` } }),
    body: { items: items.map(render), next },
  };
}

/** The same as CSV. A spreadsheet has no place for a cursor, so the link is the only way on. */
export function answerCsv<T>(
  { items, next }: Listed<T>,
  render: (items: readonly T[]) => string,
  url: string,
): HttpResponse {
  return {
    status: 200,
    headers: {
      "content-type": "text/csv; charset=utf-8; header=present",
      ...(next !== undefined && { link: `<${nextUrl(url, next)}>; rel="next"` }),
    },
    body: render(items),
  };
}

function nextUrl(url: string, next: string): string {
  const [path = "", query = ""] = url.split("?", 2);
  const parameters = new URLSearchParams(query);
  parameters.set("after", next);
  return `${path}?${parameters}`;
}

/** The outcome of a change, for bodies that also hold the changed object. */
export function changeView({ generation, dryRun, warnings }: Omit<Changed<unknown>, "value">): ChangeView {
  return { dryRun, generation, warnings: problemBodies(warnings) };
}

/** The outcome of a change. */
export function changeBody(changed: Omit<Changed<unknown>, "value">): ChangeBody {
  return change.render(changeView(changed));
}

/** At most this many problems and warnings are listed in one answer. */
const maxProblems = 100;

export function problemBodies(problems: readonly Problem[]): readonly ProblemBody[] {
  return describeProblems(problems, maxProblems);
}
