const quietMs = 60_000;
const warnedAtMs = new Map<string, number>();

/** Emits a process warning, at most once a minute per code, so that a repeated fault does not flood the log. */
export function warnOncePerMinute(code: string, message: string): void {
  const nowMs = performance.now();
  const lastMs = warnedAtMs.get(code);
  if (lastMs !== undefined && nowMs - lastMs < quietMs) return;
  warnedAtMs.set(code, nowMs);
  emitWarning(code, message);
}

/** Emits a process warning, without a limit. */
export function emitWarning(code: string, message: string): void {
  // Other runtimes have no `process`, and no other place for a warning.
  if (typeof process === "object" && typeof process.emitWarning === "function") {
    process.emitWarning(message, { type: "SluiceWarning", code });
  }
}
