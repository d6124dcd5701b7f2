import { isDeepStrictEqual } from "node:util";
import { renderPath } from "sluice/internal";
import { renderYaml } from "sluice/policy-text";
import type { PolicyDiff, PolicyDocument } from "../policy-control.ts";

type Change = PolicyDiff["changes"][number];

/** The changes from one document to another, by place; undefined: there is no document. */
export function diffDocuments(
  before: PolicyDocument | undefined,
  after: PolicyDocument | undefined,
): Pick<PolicyDiff, "changes" | "text"> {
  const changes: Change[] = [];
  diffValues([], before ?? {}, after ?? {}, changes);
  const isLarge = [before, after].some((one) => JSON.stringify(one ?? {}).length > maxYamlLength);
  return { changes, text: diffLines(renderLines(before, isLarge), renderLines(after, isLarge)) };
}

/**
 * Rendering longer documents as YAML takes seconds, which would block decisions. They are shown as JSON, which is valid
 * YAML.
 */
const maxYamlLength = 128 * 1024;

function diffValues(path: readonly (string | number)[], before: unknown, after: unknown, changes: Change[]): void {
  if (isDeepStrictEqual(before, after)) return;
  const at = renderPath(path);
  if (before === undefined) changes.push({ path: at, change: "added", before, after });
  else if (after === undefined) changes.push({ path: at, change: "removed", before, after });
  else if (Array.isArray(before) && Array.isArray(after)) {
    for (let i = 0; i < Math.max(before.length, after.length); i++)
      diffValues([...path, i], before[i], after[i], changes);
  } else if (isRecord(before) && isRecord(after)) {
    // In the order of the new one, with removed fields last.
    for (const key of new Set([...Object.keys(after), ...Object.keys(before)]))
      diffValues([...path, key], before[key], after[key], changes);
  } else changes.push({ path: at, change: "changed", before, after });
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function renderJson(value: unknown): string {
  const text = JSON.stringify(value, undefined, 2);
  return text.replaceAll(/[\u007f-\u009f]/g, (one) => `\\u00${one.charCodeAt(0).toString(16)}`);
}

function renderLines(document: PolicyDocument | undefined, isLarge: boolean): readonly string[] {
  if (document === undefined) return [];
  return (isLarge ? renderJson(document) : renderYaml(document).trimEnd()).split("\n");
}

/** Above this many comparisons, everything between the first and the last difference counts as different. */
const maxComparisons = 4_000_000;

/** Line by line: ` ` the same, `-` only before, `+` only after. */
function diffLines(before: readonly string[], after: readonly string[]): string {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let same = 0;
  while (
    same < before.length - start &&
    same < after.length - start &&
    before[before.length - 1 - same] === after[after.length - 1 - same]
  )
    same++;
  const lines = [
    ...before.slice(0, start).map((line) => ` ${line}`),
    ...diffMiddle(before.slice(start, before.length - same), after.slice(start, after.length - same)),
    ...before.slice(before.length - same).map((line) => ` ${line}`),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function diffMiddle(before: readonly string[], after: readonly string[]): readonly string[] {
  const [rows, columns] = [before.length, after.length];
  if (rows * columns > maxComparisons) return [...before.map((line) => `-${line}`), ...after.map((line) => `+${line}`)];
  // longest[i][j]: how many lines the rest of both has in common, starting at i and j.
  const width = columns + 1;
  const longest = new Uint32Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--)
      longest[i * width + j] =
        before[i] === after[j]
          ? longest[(i + 1) * width + j + 1]! + 1
          : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
  }
  const lines: string[] = [];
  let [i, j] = [0, 0];
  while (i < rows || j < columns) {
    if (i < rows && j < columns && before[i] === after[j]) {
      lines.push(` ${before[i]}`);
      i++;
      j++;
    } else if (i < rows && (j >= columns || longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!)) {
      lines.push(`-${before[i]}`);
      i++;
    } else {
      lines.push(`+${after[j]}`);
      j++;
    }
  }
  return lines;
}
