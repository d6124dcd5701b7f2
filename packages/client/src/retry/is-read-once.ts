/** Whether something hands itself out once only, as a generator does: who looks at it takes it from whoever sends it. */
export function isReadOnce(value: unknown): boolean {
  if (typeof value !== "object" || value === null || !(Symbol.iterator in value)) return false;
  const iterate = value[Symbol.iterator];
  return typeof iterate === "function" && iterate.call(value) === value;
}
