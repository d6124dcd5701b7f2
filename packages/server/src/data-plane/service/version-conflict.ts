import { SluiceError } from "sluice";

/** Something was changed since the caller saw it, or is there although they thought it was not. */
export class VersionConflict extends SluiceError {
  /** The version there is; 0: none. */
  readonly currentVersion: number;
  /** The current state as a body of the admin API, if the answer shows it. */
  readonly current: Readonly<Record<string, unknown>> | undefined;

  constructor(
    what: string,
    expected: number | undefined,
    currentVersion: number,
    { current, message }: { readonly current?: Readonly<Record<string, unknown>>; readonly message?: string } = {},
  ) {
    super("version_conflict", message ?? messageOf(what, expected, currentVersion));
    this.currentVersion = currentVersion;
    this.current = current;
  }
}

function messageOf(what: string, expected: number | undefined, current: number): string {
  if (current === 0) return `${what} does not exist, and version ${expected ?? 0} was expected; look at it again`;
  if (expected === undefined || expected === 0)
    return `${what} exists, at version ${current}; to change it, say that this is the version you saw`;
  return `${what} is at version ${current}, and version ${expected} was expected; look at what changed, and try again`;
}
