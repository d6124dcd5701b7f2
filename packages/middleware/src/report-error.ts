import { isPromiseLike } from "./is-promise-like.ts";
import { warnOfProcess } from "./warn-of-process.ts";

/**
 * Tells who listens what went wrong, else warns under this code. Whatever the listener throws, at once or later, becomes a
 * warning: there is nobody left to whom it could be thrown.
 */
export function reportError<Request>(
  onError: ((error: unknown, request: Request) => unknown) | undefined,
  error: unknown,
  request: Request,
  code: string,
  what: string,
): void {
  if (onError === undefined) {
    warnOfProcess(code, `${what}: ${String(error)}`);
    return;
  }
  const failed = (thrown: unknown): void => warnOfProcess(code, `onError threw ${String(thrown)} when ${what}`);
  try {
    const told = onError(error, request);
    if (isPromiseLike(told)) told.then(undefined, failed);
  } catch (thrown) {
    failed(thrown);
  }
}
