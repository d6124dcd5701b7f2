import { type Problem, SluiceError } from "sluice";
import { parseYamlDocument } from "sluice/policy-text";

/** As long as the longest body in JSON: aliases make no more of a body than could be sent without them. */
const maxWrittenOutLength = 1024 * 1024;

/** What a text in YAML says, as plain data. Throws `invalid_request` with every problem and its place. */
export function readYaml({ text }: { readonly text: string }): unknown {
  const { contents, problems } = parseYamlDocument(text, undefined);
  if (problems.length > 0) throw new SluiceError("invalid_request", "the body is not YAML that can be read", problems);
  const { length } = JSON.stringify(contents) ?? "";
  if (length > maxWrittenOutLength)
    throw new SluiceError(
      "body_too_large",
      `the body says ${length} characters in JSON, aliases written out, and may say ${maxWrittenOutLength}`,
    );
  return contents;
}

/** A problem with what a text says. What it is about is known only to the thread that found it. */
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
