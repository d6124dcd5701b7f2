const flags: readonly (readonly [RegExp, string])[] = [
  [/^policies\b.*/, "--policy"],
  [/^(cost|domain|id)$/, "--$1"],
];

/** What was typed for a field of a check; a dimension is typed by its name. */
export function flagForField(field: string): string {
  const found = flags.find(([pattern]) => pattern.test(field));
  return found === undefined ? field.replace(/^dimensions\./, "") : field.replace(...found);
}
