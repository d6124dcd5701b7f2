/** Reads an option that may be repeated. */
export function collect(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}
