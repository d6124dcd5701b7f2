import type { PlanBody } from "@sluice/protocol/admin";

/** A limit that knows plans, with its windows in each. */
export interface MatrixRow {
  readonly policy: string;
  readonly limit: string;
  readonly by: readonly string[];
  /** By plan. */
  readonly cells: ReadonlyMap<string, MatrixCell>;
}

export interface MatrixCell {
  /** own: the limit's own windows hold, because it has none for the plan. none: the limit is for other plans alone. */
  readonly kind: "plan" | "file" | "own" | "none";
  readonly windows: readonly string[];
}

/** Every limit that any of the plans has windows for, by policy, against all plans. */
export function makeMatrix(plans: readonly PlanBody[]): readonly MatrixRow[] {
  const rows = new Map<
    string,
    { policy: string; limit: string; by: readonly string[]; cells: Map<string, MatrixCell> }
  >();
  const put = (plan: string, { policy, limit, by }: Omit<MatrixRow, "cells">, cell: MatrixCell) => {
    const key = JSON.stringify([policy, limit]);
    const row = rows.get(key) ?? { policy, limit, by, cells: new Map() };
    rows.set(key, row);
    row.cells.set(plan, cell);
  };
  for (const plan of plans) {
    for (const one of plan.limits) put(plan.plan, one, { kind: "plan", windows: one.windows.map(windowText) });
    for (const one of plan.in_files) put(plan.plan, one, { kind: "file", windows: one.windows });
    for (const one of plan.without)
      put(
        plan.plan,
        one,
        one.windows === undefined
          ? { kind: "none", windows: [] }
          : { kind: "own", windows: one.windows.map(windowText) },
      );
  }
  return [...rows.values()].toSorted(
    (one, other) => compare(one.policy, other.policy) || compare(one.limit, other.limit),
  );
}

/** A window as people write it; one in long form as JSON, which YAML is too. */
export function windowText(window: unknown): string {
  return typeof window === "string" ? window : JSON.stringify(window);
}

/** What was typed, with commas. Commas within braces belong to a window in long form. */
export function parseWindows(text: string): readonly unknown[] {
  const parts: string[] = [];
  let depth = 0;
  let part = "";
  for (const char of text) {
    if (char === "{") depth += 1;
    if (char === "}") depth -= 1;
    if (char === "," && depth === 0) {
      parts.push(part);
      part = "";
    } else part += char;
  }
  return [...parts, part]
    .map((one) => one.trim())
    .filter(Boolean)
    .map(readWindow);
}

function readWindow(text: string): unknown {
  if (!text.startsWith("{")) return text;
  try {
    return JSON.parse(text);
  } catch {
    // The server says what is wrong with it.
    return text;
  }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
