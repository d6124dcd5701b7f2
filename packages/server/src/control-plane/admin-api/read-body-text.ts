import { type Problem, SluiceError } from "sluice";
import type { HttpRequest } from "../../data-plane/transports/http/exchange.ts";
import { requestActor } from "../../data-plane/transports/http/request-actor.ts";
import type { TextControl } from "../control-plane.ts";
import { isTooDeep, maxDepth } from "../documents/is-too-deep.ts";

export interface BodyText {
  readonly contents: unknown;
  /** Problems with the content, each with its line and column if it was YAML. */
  placed(problems: readonly Problem[]): Promise<readonly Problem[]>;
}

/** Reading YAML takes fifty times as long as reading JSON. */
const maxYamlLength = 128 * 1024;

/** Parses a body in JSON or YAML. Throws `invalid_request` if it cannot be parsed. */
export async function readBodyText(request: HttpRequest, texts: TextControl): Promise<BodyText> {
  const { body, yaml } = request;
  if (yaml === undefined) {
    refuseDeep(body);
    return { contents: body, placed: async (all) => all };
  }
  if (yaml.length > maxYamlLength) {
    const message = `a body in YAML may have ${maxYamlLength} characters here, and has ${yaml.length}; send it as JSON`;
    throw new SluiceError("body_too_large", message);
  }
  const actor = requestActor(request);
  const contents = await texts.readYaml(actor, yaml);
  refuseDeep(contents);
  // Problems inside of a document within the body have paths that begin at the document.
  const inside = isEnvelope(contents);
  const isShort = ({ path }: Problem): boolean => inside && path[0] !== "document";
  return {
    contents,
    async placed(all): Promise<readonly Problem[]> {
      const whole = all.map((one) => (isShort(one) ? { ...one, path: ["document", ...one.path] } : one));
      const placed = await texts.place(actor, yaml, whole);
      return all.map((one, index) => ({ ...one, place: placed[index]!.place! }));
    },
  };
}

/** Throws `invalid_request` for a body that is nested more deeply than any valid one. */
export function refuseDeep(body: unknown): void {
  if (!isTooDeep(body)) return;
  const message = `is nested deeper than ${maxDepth} levels`;
  throw new SluiceError("invalid_request", `the body ${message}`, [{ path: [], message }]);
}

function isEnvelope(contents: unknown): boolean {
  return typeof contents === "object" && contents !== null && Object.hasOwn(contents, "document");
}
