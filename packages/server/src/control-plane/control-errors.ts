import { PolicyStoreUnavailable, RuleTaken, TokenNameTaken, UnstorableValue } from "@sluice/sql";
import { type Problem, renderProblem, SluiceError } from "sluice";

/** Translates errors of the store for callers of the control plane, without the store's address. */
export function translateStoreError(error: unknown): unknown {
  if (error instanceof PolicyStoreUnavailable)
    return new SluiceError(
      "policy_store_unavailable",
      error.maybeDone
        ? "the policy store did not answer, so this may or may not have been done; check before you retry"
        : "the policy store is unavailable, so nothing can be read or changed; decisions continue as before",
    );
  if (error instanceof RuleTaken) return new SluiceError("already_exists", error.message);
  if (error instanceof TokenNameTaken)
    return new SluiceError(
      "already_exists",
      "a token that is in use has this name; choose another, or revoke that one",
    );
  if (error instanceof UnstorableValue) return invalidField([error.field], error.message.slice(error.field.length + 1));
  return error;
}

export function invalidRequest(problems: readonly Problem[]): SluiceError {
  return new SluiceError("invalid_request", problems.map(renderProblem).join("; "), problems);
}

export function invalidField(path: Problem["path"], message: string): SluiceError {
  return invalidRequest([{ path, message }]);
}

const maxShown = 5;

export function invalidPolicies(problems: readonly Problem[]): SluiceError {
  const shown = problems.slice(0, maxShown).map((problem) => `\n  ${renderProblem(problem)}`);
  const more = problems.length > maxShown ? `\n  and ${problems.length - maxShown} more` : "";
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return new SluiceError("invalid_policies", `${count} in the policies:${shown.join("")}${more}`, problems);
}

export function notFound(what: string): SluiceError {
  return new SluiceError("resource_not_found", `${what} does not exist`);
}
