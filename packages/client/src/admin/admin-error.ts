import type { AdminErrorBody } from "@sluice/protocol/admin";

/**
 * The control plane refused a request: it did nothing. `code` says why, and is stable (docs/errors.md lists all codes); `problem`
 * is the whole body, with every field that is wrong, and in a version conflict what is there now.
 */
export class AdminError extends Error {
  override readonly name: string = "AdminError";
  /** The HTTP status. */
  readonly status: number;
  /** Absent if the answer is not one of a control plane: another server, or a proxy, answered. */
  readonly code: AdminErrorBody["code"] | undefined;
  readonly problem: AdminErrorBody | undefined;
  /** The answer as it came. */
  readonly text: string;

  constructor(status: number, text: string) {
    const problem = parseProblem(text);
    super(problem?.detail ?? `the answer is ${status}, but not one of a control plane: ${text.slice(0, 200)}`);
    this.status = status;
    this.code = problem?.code;
    this.problem = problem;
    this.text = text;
  }
}

/**
 * There is no answer: no connection, or none in time. A change may have been made all the same. To find out, read what you wanted
 * to change; with `expected`, sending the change again never makes it twice.
 */
export class AdminUnavailable extends Error {
  override readonly name: string = "AdminUnavailable";
  /** Scheme, host and port. */
  readonly server: string;
  /** Why there is no answer: "the connection was refused". */
  readonly reason: string;

  constructor(server: string, cause: Error) {
    super(`no answer from ${server}: ${cause.message}`, { cause });
    this.server = server;
    this.reason = cause.message;
  }
}

function parseProblem(text: string): AdminErrorBody | undefined {
  try {
    const body = JSON.parse(text) as Partial<AdminErrorBody> | null;
    return body?.code === undefined || body.detail === undefined ? undefined : (body as AdminErrorBody);
  } catch {
    return undefined;
  }
}
