import { isPromiseLike } from "./is-promise-like.ts";
import { warnOncePerMinute } from "./warn-once-per-minute.ts";

/**
 * Passes the error to the listener, or warns under this code if there is none. If the listener throws, at once or later,
 * that becomes a warning, because no caller is left to catch it.
 */
export function reportError<Request>(
  onError: ((error: unknown, request: Request) => unknown) | undefined,
  error: unknown,
  request: Request,
  code: string,
  what: string,
): void {
  if (onError === undefined) {
    warnOncePerMinute(code, `${what}: ${String(error)}`);
    return;
  }
  const failed = (thrown: unknown): void => warnOncePerMinute(code, `onError threw ${String(thrown)} when ${what}`);
  try {
    const returned = onError(error, request);
    if (isPromiseLike(returned)) returned.then(undefined, failed);
  } catch (thrown) {
    failed(thrown);
  }
}
