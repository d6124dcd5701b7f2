import { SluiceError } from "sluice";

/** Something was changed since the caller saw it, or exists although the caller thought it did not. */
export class VersionConflict extends SluiceError {
  /** The current version; 0 if there is none. */
  readonly currentVersion: number;
  /** The current state as a body of the admin API, if the answer shows it. */
  readonly current: Readonly<Record<string, unknown>> | undefined;

  constructor(
    what: string,
    expected: number | undefined,
    currentVersion: number,
    { current, message }: { readonly current?: Readonly<Record<string, unknown>>; readonly message?: string } = {},
  ) {
    super("version_conflict", message ?? renderMessage(what, expected, currentVersion));
    this.currentVersion = currentVersion;
    this.current = current;
  }
}

function renderMessage(what: string, expected: number | undefined, current: number): string {
  if (current === 0) return `${what} does not exist, and version ${expected ?? 0} was expected; read it again`;
  if (expected === undefined || expected === 0)
    return `${what} exists, at version ${current}; to change it, send this as the version you saw`;
  return `${what} is at version ${current}, and version ${expected} was expected; read what changed, and try again`;
}
