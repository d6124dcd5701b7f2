import type { PlannedPolicyBody } from "@sluice/protocol/admin";
import { printable } from "sluice/internal";
import { type DiffLine, splitDiff, withContext } from "../terminal/diff-lines.ts";
import type { Paint } from "../terminal/paint.ts";
import { type Column, renderTable } from "../terminal/render-table.ts";

const signs: Readonly<Record<PlannedPolicyBody["action"], string>> = {
  create: "+",
  change: "~",
  delete: "-",
  unchanged: "=",
};

/** A table of what becomes of each policy, and below it what changes in each. Those that stay as they are, are counted. */
export function renderPlan(
  plan: readonly PlannedPolicyBody[],
  paint: Paint,
  width: number | undefined,
  mostLines: number = Number.POSITIVE_INFINITY,
): string {
  const changes = plan.filter(({ action }) => action !== "unchanged");
  const unchanged = plan.length - changes.length;
  const parts: string[] = [];
  if (changes.length > 0) {
    const paints = { "+": paint.good, "~": paint.careful, "-": paint.bad, "=": paint.faint } as const;
    const columns: readonly Column[] = [
      { title: "", paint: (sign, shown) => paints[sign as keyof typeof paints](shown) },
      { title: "policy", flexible: true },
      { title: "action" },
      { title: "version" },
      { title: "lines", align: "right" },
    ];
    parts.push(renderTable(columns, changes.map(renderRow), width));
    parts.push(...renderDiffs(changes, paint, mostLines));
  }
  return [...parts, `${renderSummary(plan, unchanged)}\n`].join("\n");
}

function renderDiffs(changes: readonly PlannedPolicyBody[], paint: Paint, mostLines: number): readonly string[] {
  const shown = changes.filter(({ action }) => action !== "delete");
  const parts: string[] = [];
  let lines = 0;
  for (const [index, { policy, diff: text }] of shown.entries()) {
    if (lines > mostLines || text === undefined) {
      parts.push(`… and ${shown.length - index} more policies; sluice policy diff shows all of them\n`);
      break;
    }
    const diff = renderDiff(splitDiff(text), paint);
    lines += diff.split("\n").length;
    parts.push(`${paint.strong(`${policy}:`)}\n${diff}`);
  }
  return parts;
}

function renderRow({ policy, action, version, diff }: PlannedPolicyBody): readonly string[] {
  const becomes =
    // A version that was rolled back keeps its number, so the next one need not follow the current one.
    action === "create" ? "new" : `${version} → ${action === "delete" ? "gone" : "new"}`;
  const lines = splitDiff(diff);
  const count = (sign: string): number => lines.filter((line) => line.startsWith(sign)).length;
  return [signs[action], policy, action, becomes, diff === undefined ? "…" : `+${count("+")} −${count("-")}`];
}

function renderSummary(plan: readonly PlannedPolicyBody[], unchanged: number): string {
  const count = (action: PlannedPolicyBody["action"]): number => plan.filter((one) => one.action === action).length;
  return `${count("create")} to create, ${count("change")} to change, ${count("delete")} to delete, ${unchanged} unchanged`;
}

/** What changes, with a little around it, indented. */
export function renderDiff(lines: readonly DiffLine[], paint: Paint): string {
  const shown = withContext(lines).map((line) => (line === undefined ? paint.faint("    …") : renderLine(line, paint)));
  return shown.map((line) => `${line}\n`).join("");
}

function renderLine(line: DiffLine, paint: Paint): string {
  // The indentation is YAML's, and stays.
  const text = line.slice(1).replace(/\S[\s\S]*/, printable);
  if (line.startsWith("+")) return paint.good(`  + ${text}`);
  return line.startsWith("-") ? paint.bad(`  - ${text}`) : `    ${text}`;
}
