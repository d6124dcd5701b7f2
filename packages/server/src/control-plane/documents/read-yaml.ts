import { type Problem, SluiceError } from "sluice";
import { parseYamlDocument } from "sluice/policy-text";

/** The length of the longest JSON body: aliases cannot make a body longer than one without them. */
const maxWrittenOutLength = 1024 * 1024;

/** Parses YAML into plain data. Throws `invalid_request` with every problem and its place. */
export function readYaml({ text }: { readonly text: string }): unknown {
  const { contents, problems } = parseYamlDocument(text, undefined);
  if (problems.length > 0) throw new SluiceError("invalid_request", "the body is not valid YAML", problems);
  const { length } = JSON.stringify(contents) ?? "";
  if (length > maxWrittenOutLength)
    throw new SluiceError(
      "body_too_large",
      `with its aliases expanded, the body has ${length} characters in JSON; at most ${maxWrittenOutLength} are allowed`,
    );
  return contents;
}

/** A problem with the content of a text. Only the thread that found it knows its subject. */
export interface UnplacedProblem {
  readonly problem: Problem;
  readonly aboutKey: boolean;
}

/** The problems, each with its line and column. */
export function placeProblems({
  text,
  unplaced,
}: {
  readonly text: string;
  readonly unplaced: readonly UnplacedProblem[];
}): readonly Problem[] {
  const { withPlace } = parseYamlDocument(text, undefined);
  return unplaced.map(({ problem, aboutKey }) => withPlace(problem, aboutKey));
}
