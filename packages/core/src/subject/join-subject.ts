/**
 * The values of a limit's dimensions as one text: `acme|u1`. A bar or backslash inside a value is escaped, so that no
 * two lists of values ever make the same subject.
 */
export function joinSubject(values: readonly string[]): string {
  if (values.length === 1) return values[0]!;
  let subject = "";
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    const safe = value.includes("|") || value.includes("\\") ? value.replace(/[|\\]/g, "\\$&") : value;
    subject = i === 0 ? safe : `${subject}|${safe}`;
  }
  return subject;
}
