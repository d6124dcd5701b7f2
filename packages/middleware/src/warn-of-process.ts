const quietMs = 60_000;
const warnedAtMs = new Map<string, number>();

/** A warning of the process under its code, at most once a minute each: a fault that repeats does not flood a log. */
export function warnOfProcess(code: string, message: string): void {
  const nowMs = performance.now();
  const lastMs = warnedAtMs.get(code);
  if (lastMs !== undefined && nowMs - lastMs < quietMs) return;
  warnedAtMs.set(code, nowMs);
  emitWarning(code, message);
}

/** The same, for what is said once. */
export function emitWarning(code: string, message: string): void {
  // Runtimes that are not Node have no process, and no other place for a warning.
  if (typeof process === "object" && typeof process.emitWarning === "function") {
    process.emitWarning(message, { type: "SluiceWarning", code });
  }
}
