/** Whether a body can be read only once, as a generator can: reading it here would take it from the code that sends it. */
export function isReadOnce(value: unknown): boolean {
  if (typeof value !== "object" || value === null || !(Symbol.iterator in value)) return false;
  const iterate = value[Symbol.iterator];
  return typeof iterate === "function" && iterate.call(value) === value;
}
