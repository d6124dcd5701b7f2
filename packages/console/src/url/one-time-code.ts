let taken: string | undefined;

/** The code of a link such as `/#code=…`. It is removed from the address and the history at once, before anything else runs. */
export function removeCode(): void {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code === null || code === "") return;
  taken = code;
  history.replaceState(null, "", location.pathname + location.search);
}

/** Hands the code out once. */
export function takeCode(): string | undefined {
  const code = taken;
  taken = undefined;
  return code;
}

/** Whether a code waits to be exchanged. */
export function hasCode(): boolean {
  return taken !== undefined;
}
