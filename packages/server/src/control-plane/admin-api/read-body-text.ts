import { type Problem, SluiceError } from "sluice";
import { actorOf } from "../../data-plane/transports/http/actor-of.ts";
import type { HttpRequest } from "../../data-plane/transports/http/exchange.ts";
import type { TextControl } from "../control-plane.ts";
import { isTooDeep, maxDepth } from "../documents/is-too-deep.ts";

export interface BodyText {
  readonly contents: unknown;
  /** Problems with what it says, each with its line and column where it was YAML. */
  placed(problems: readonly Problem[]): Promise<readonly Problem[]>;
}

/** Reading YAML takes fifty times as long as reading JSON. */
const maxYamlLength = 128 * 1024;

/** What a body says, be it JSON or YAML. Throws `invalid_request` where it cannot be read. */
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
  const actor = actorOf(request);
  const contents = await texts.readYaml(actor, yaml);
  refuseDeep(contents);
  // What is wrong inside of a document that stands inside of the body has a path that begins at the document.
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

/** Throws `invalid_request` for a body that is nested deeper than anything that is looked at. */
export function refuseDeep(body: unknown): void {
  if (!isTooDeep(body)) return;
  const message = `is nested deeper than ${maxDepth} levels`;
  throw new SluiceError("invalid_request", `the body ${message}`, [{ path: [], message }]);
}

function isEnvelope(contents: unknown): boolean {
  return typeof contents === "object" && contents !== null && Object.hasOwn(contents, "document");
}
