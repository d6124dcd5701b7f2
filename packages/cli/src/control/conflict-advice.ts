import { printable } from "sluice/internal";
import { RefusedRequest } from "./refused-request.ts";
import { renderKeptSubject } from "./render-kept-subject.ts";

/** A refused change of a subject, with its current state if another change came first. */
export function withSubjectAdvice(error: unknown, subject: string, nowMs: number): unknown {
  if (!(error instanceof RefusedRequest) || error.body.code !== "version_conflict") return error;
  const { current } = error.body;
  if (current === undefined) return error;
  const now = printable(renderKeptSubject(current, nowMs));
  return new RefusedRequest(
    `${printable(subject)} was changed by another command meanwhile, so nothing was done. Now it has ${now}. Run the command again to change that.`,
    error.exitCode,
    error.body,
  );
}

/**
 * A refused change of a policy, with what its user can do about it where it changed in the meantime; and with its name where
 * only a field of it is named, because a file has several.
 */
export function withAdvice(error: unknown, id: string, expected: number): unknown {
  if (!(error instanceof RefusedRequest)) return error;
  if (error.body.code === "permission_denied" && !error.message.includes(id) && error.body.problems?.length)
    return new RefusedRequest(
      error.message.replace(/^not allowed: /, `not allowed: policy ${printable(id)}: `),
      error.exitCode,
      error.body,
    );
  if (error.body.code === "already_exists" && error.message.endsWith("roll it back first"))
    return new RefusedRequest(
      `${error.message}: sluice policy rollout ${printable(id)} --finish, or --roll-back`,
      error.exitCode,
      error.body,
    );
  if (error.body.code !== "version_conflict") return error;
  const { current_version: current } = error.body;
  // Also said of a version that is on its way already, where nothing changed in the meantime.
  if (current === undefined || current === expected) return error;
  const now = current === 0 ? "is gone" : `is at version ${current}`;
  const was = expected === 0 ? "there was none" : `it was at version ${expected}`;
  const from = expected === 0 ? "" : ` --from ${expected}`;
  const look = current === 0 ? `sluice policy history ${id}` : `sluice policy diff ${id}${from} --to ${current}`;
  return new RefusedRequest(
    `policy ${id} ${now} by now; ${was} when this was planned. See what changed: ${look}; then do it again.`,
    error.exitCode,
    error.body,
  );
}
