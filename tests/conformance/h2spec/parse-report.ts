import type { CaseResult } from "../judge-results.ts";

/**
 * Reads h2spec's JUnit report. A case's id is its section and its number there, as h2spec prints and takes them:
 * `http2/5.1.1/2`. h2spec calls failures errors.
 */
export function parseReport(xml: string): readonly CaseResult[] {
  const numbers = new Map<string, number>();
  return [...xml.matchAll(/<testcase package="([^"]*)" classname="([^"]*)"[^>]*?(?:\/>|>([\s\S]*?)<\/testcase>)/g)].map(
    ([, section = "", name = "", body = ""]): CaseResult => {
      const number = (numbers.get(section) ?? 0) + 1;
      numbers.set(section, number);
      const detail = /<(?:error|failure)[^>]*>([\s\S]*?)<\/(?:error|failure)>/.exec(body)?.[1];
      const skipped = /<skipped/.test(body);
      return {
        id: `${section}/${number}`,
        name: unescapeXml(name),
        outcome: skipped ? "not applicable" : detail === undefined ? "passed" : "failed",
        detail: detail === undefined ? "" : describe(unescapeXml(detail)),
      };
    },
  );
}

/** What it expected, line by line, and on the last line what happened. */
function describe(detail: string): string {
  const lines = detail.trim().split("\n");
  const actual = lines.pop() ?? "";
  return `expected ${lines.join(", or ")}; got ${actual}`;
}

function unescapeXml(text: string): string {
  const named: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return text.replaceAll(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (_, decimal, hex, name) =>
    name === undefined
      ? String.fromCodePoint(decimal ? Number(decimal) : Number.parseInt(hex, 16))
      : (named[name] ?? ""),
  );
}
