/** Disagreements between the page of errors and the list of codes, one line each. */
export function compareErrorPage(page: string, codes: readonly string[]): readonly string[] {
  const sections = new Map<string, string>();
  const problems: string[] = [];
  for (const section of page.split(/^(?=## )/m)) {
    const code = /^## `([^`]+)`$/m.exec(section)?.[1];
    if (code === undefined) continue;
    if (sections.has(code)) problems.push(`\`${code}\` has two headings`);
    sections.set(code, section);
  }
  for (const code of codes) {
    const section = sections.get(code);
    if (section === undefined) problems.push(`\`${code}\` has no heading`);
    else if (!/^HTTP [45]\d\d\b|^No HTTP status\b/m.test(section)) problems.push(`\`${code}\` has no HTTP status`);
  }
  for (const code of sections.keys()) {
    if (!codes.includes(code)) problems.push(`\`${code}\` has a heading and is not a code`);
  }
  return problems;
}
