import type { SimulationReport } from "../replay/simulation-report.ts";

const quantities = ["denied", "newly-denied", "subjects-hurt"] as const;

/** `denied > 0.1%`: what must not be so. */
export interface FailCondition {
  readonly text: string;
  readonly quantity: (typeof quantities)[number];
  readonly relation: ">" | ">=";
  readonly bound: number;
  /** Whether the bound is a percentage of all requests, rather than a count. */
  readonly percent: boolean;
}

const form = `${quantities.join(", ")}, then > or >=, then a number or a percentage, such as "denied > 0.1%"`;

/** Throws a `RangeError` that says what is wrong. */
export function parseFailIf(text: string): FailCondition {
  const [, name, relation, number, sign] = /^\s*([a-z-]+)\s*(>=?)\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(text) ?? [];
  const quantity = quantities.find((one) => one === name);
  if (quantity === undefined || (relation !== ">" && relation !== ">="))
    throw new RangeError(`${JSON.stringify(text)} should be ${form}`);
  if (quantity === "subjects-hurt" && sign === "%")
    throw new RangeError(`${JSON.stringify(text)}: subjects-hurt is a count, without %`);
  return { text: text.trim(), quantity, relation, bound: Number(number), percent: sign === "%" };
}

export interface FailVerdict {
  readonly condition: string;
  readonly failed: boolean;
  /** The value that was compared: a count, or a percentage if the bound is one. */
  readonly value: number;
}

/** Logs with whole seconds give a range; the most that it contains is compared. */
export function judge(condition: FailCondition, report: SimulationReport): FailVerdict {
  const { quantity, relation, bound, percent } = condition;
  const count = findCount(quantity, report);
  const value = !percent ? count : report.requests === 0 ? 0 : (100 * count) / report.requests;
  return { condition: condition.text, failed: relation === ">" ? value > bound : value >= bound, value };
}

function findCount(quantity: FailCondition["quantity"], { candidate, flips, hurt }: SimulationReport): number {
  const beyond = (candidate.range?.most_denied ?? candidate.denied) - candidate.denied;
  if (quantity === "subjects-hurt") return hurt.subjects;
  return (quantity === "denied" ? candidate.denied : flips.allowed_denied) + beyond;
}
