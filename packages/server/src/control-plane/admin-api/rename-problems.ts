import { type Problem, renderProblem, SluiceError } from "sluice";

/** Runs `work`, and reports its problems by the names that the caller knows. */
export async function renameProblems<T>(
  work: Promise<T>,
  rename: (path: Problem["path"]) => Problem["path"],
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof SluiceError) || error.problems.length === 0) throw error;
    const problems = error.problems.map((problem) => ({ ...problem, path: rename(problem.path) }));
    throw new SluiceError(error.code, problems.map(renderProblem).join("; "), problems);
  }
}
