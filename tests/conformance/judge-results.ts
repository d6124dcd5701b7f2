/** One case that was played. */
export interface CaseResult {
  /** Unique within its part. */
  readonly id: string;
  readonly name: string;
  readonly outcome: "passed" | "failed" | "not applicable";
  /** What happened instead. Empty if it passed. */
  readonly detail: string;
}

/** A case that is known not to pass, and why that is right or accepted. */
export interface KnownException {
  readonly id: string;
  readonly because: string;
  /** Passes or not, depending on which of two things happens first. */
  readonly varies?: true;
}

export interface JudgedCase extends CaseResult {
  /** Why it need not pass. */
  readonly because?: string;
  readonly varies?: true;
}

export interface Verdict {
  readonly cases: readonly JudgedCase[];
  /** What nobody expected: failures, passes of cases that are listed as exceptions, and exceptions of no case. */
  readonly problems: readonly string[];
}

/** Holds results against the list of exceptions, in both directions. */
export function judgeResults(results: readonly CaseResult[], exceptions: readonly KnownException[]): Verdict {
  const listed = new Map(exceptions.map((exception) => [exception.id, exception]));
  const problems: string[] = [];
  const cases = results.map((result): JudgedCase => {
    const exception = listed.get(result.id);
    listed.delete(result.id);
    const title = result.id === result.name ? result.id : `${result.id} (${result.name})`;
    if (result.outcome === "passed" && exception !== undefined && exception.varies !== true)
      problems.push(`${title} passes, and is listed as an exception: take it off the list`);
    if (result.outcome !== "passed" && exception === undefined)
      problems.push(`${title}: ${result.outcome}. ${result.detail}`);
    return exception === undefined ? result : { ...result, ...exception };
  });
  for (const id of listed.keys()) problems.push(`${id} is listed as an exception, and there is no such case`);
  return { cases, problems };
}
