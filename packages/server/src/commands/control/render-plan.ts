import { printable } from "sluice";
import { type DiffLine, withContext } from "./diff-lines.ts";
import type { Paint } from "./paint.ts";
import type { PlannedChange } from "./plan-policies.ts";
import { type Column, renderTable } from "./render-table.ts";

const signs: Readonly<Record<PlannedChange["action"], string>> = {
  create: "+",
  change: "~",
  delete: "-",
  unchanged: "=",
};

/** A table of what becomes of each policy, and below it what changes in each. Those that stay as they are, are counted. */
export function renderPlan(
  plan: readonly PlannedChange[],
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
    parts.push(renderTable(columns, changes.map(rowOf), width));
    parts.push(...renderDiffs(changes, paint, mostLines));
  }
  return [...parts, `${renderSummary(plan, unchanged)}\n`].join("\n");
}

function renderDiffs(changes: readonly PlannedChange[], paint: Paint, mostLines: number): readonly string[] {
  const told = changes.filter(({ action }) => action !== "delete");
  const parts: string[] = [];
  let lines = 0;
  for (const [index, { id, lines: all }] of told.entries()) {
    if (lines > mostLines) {
      parts.push(`… and ${told.length - index} more policies; sluice policy diff shows all of them\n`);
      break;
    }
    const diff = renderDiff(all, paint);
    lines += diff.split("\n").length;
    parts.push(`${paint.strong(`${id}:`)}\n${diff}`);
  }
  return parts;
}

function rowOf({ id, action, version, lines }: PlannedChange): readonly string[] {
  const becomes =
    // A version that was rolled back keeps its number, so the next one need not follow the current one.
    action === "create" ? "new" : `${version} → ${action === "delete" ? "gone" : "new"}`;
  const count = (sign: string): number => lines.filter((line) => line.startsWith(sign)).length;
  return [signs[action], id, action, becomes, `+${count("+")} −${count("-")}`];
}

function renderSummary(plan: readonly PlannedChange[], unchanged: number): string {
  const count = (action: PlannedChange["action"]): number => plan.filter((one) => one.action === action).length;
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
