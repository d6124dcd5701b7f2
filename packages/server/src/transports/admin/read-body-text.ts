import { type Problem, SluiceError } from "sluice";
import { parseYamlDocument } from "sluice/policy-text";
import type { HttpRequest } from "../http/exchange.ts";

export interface BodyText {
  readonly contents: unknown;
  /** Problems with what it says, each with its line and column where it was YAML. */
  placed(problems: readonly Problem[]): readonly Problem[];
}

/** What a body says, be it JSON or YAML. Throws `invalid_request` where YAML cannot be read. */
export function readBodyText({ body, yaml }: Pick<HttpRequest, "body" | "yaml">): BodyText {
  if (yaml === undefined) return { contents: body, placed: (all) => all };
  const { contents, problems, withPlace } = parseYamlDocument(yaml, undefined);
  if (problems.length > 0) throw new SluiceError("invalid_request", "the body is not YAML that can be read", problems);
  // What is wrong inside of a document that stands inside of the body has a path that begins at the document.
  const inside = isEnvelope(contents);
  const place = (problem: Problem): Problem => {
    if (!inside || problem.path[0] === "document") return withPlace(problem);
    return { ...problem, place: withPlace({ ...problem, path: ["document", ...problem.path] }).place! };
  };
  return { contents, placed: (all) => all.map(place) };
}

function isEnvelope(contents: unknown): boolean {
  return typeof contents === "object" && contents !== null && Object.hasOwn(contents, "document");
}
