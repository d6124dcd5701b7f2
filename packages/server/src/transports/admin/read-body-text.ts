import { type Problem, SluiceError } from "sluice";
import { parseYamlDocument } from "sluice/policy-text";
import { isTooDeep, maxDepth } from "../../control/is-too-deep.ts";
import type { HttpRequest } from "../http/exchange.ts";

export interface BodyText {
  readonly contents: unknown;
  /** Problems with what it says, each with its line and column where it was YAML. */
  placed(problems: readonly Problem[]): readonly Problem[];
}

/** Reading YAML takes fifty times as long as reading JSON, and nothing is decided meanwhile. */
const maxYamlLength = 128 * 1024;

/** What a body says, be it JSON or YAML. Throws `invalid_request` where it cannot be read. */
export function readBodyText({ body, yaml }: Pick<HttpRequest, "body" | "yaml">): BodyText {
  if (yaml === undefined) {
    refuseDeep(body);
    return { contents: body, placed: (all) => all };
  }
  if (yaml.length > maxYamlLength) {
    const message = `a body in YAML may have ${maxYamlLength} characters here, and has ${yaml.length}; send it as JSON`;
    throw new SluiceError("body_too_large", message);
  }
  const { contents, problems, withPlace } = parseYamlDocument(yaml, undefined);
  if (problems.length > 0) throw new SluiceError("invalid_request", "the body is not YAML that can be read", problems);
  refuseDeep(contents);
  // What is wrong inside of a document that stands inside of the body has a path that begins at the document.
  const inside = isEnvelope(contents);
  const place = (problem: Problem): Problem => {
    if (!inside || problem.path[0] === "document") return withPlace(problem);
    return { ...problem, place: withPlace({ ...problem, path: ["document", ...problem.path] }).place! };
  };
  return { contents, placed: (all) => all.map(place) };
}

/** Throws `invalid_request` for a body that is nested deeper than anything that is looked at. */
export function refuseDeep(body: unknown): void {
  if (!isTooDeep(body)) return;
  const message = `is nested deeper than ${maxDepth} levels`;
  throw new SluiceError("invalid_request", `the body ${message}`, [{ path: [], message }]);
}

function isEnvelope(contents: unknown): boolean {
  return typeof contents === "object" && contents !== null && Object.hasOwn(contents, "document");
}
