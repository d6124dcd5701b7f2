import { renderPath } from "sluice/internal";
import { parseYamlDocument, renderYaml } from "sluice/policy-text";
import { CommandError } from "../terminal/terminal.ts";

/** A limit of a plan, as `plans` of a policy file has it. */
export interface WrittenPlanLimit {
  readonly policy: string;
  readonly limit?: string;
  readonly windows: readonly unknown[];
}

/** A plan as a policy file has it. */
export function renderPlanFile(
  plan: string,
  limits: readonly { readonly policy: string; readonly limit: string; readonly windows: readonly unknown[] }[],
): string {
  const written = limits.map(({ policy, limit, windows }) => ({ policy, limit, windows }));
  return renderYaml({ plans: { [plan]: { limits: written } } });
}

/** The limits of a plan in such a text. What they mean is for the control plane to say. */
export function parsePlanFile(plan: string, text: string, file: string): readonly WrittenPlanLimit[] {
  const { contents, problems, withPlace } = parseYamlDocument(text, file);
  const [problem] = problems;
  if (problem !== undefined) throw new CommandError(`${file}: ${problem.message}`);
  const limits = field(field(field(contents, "plans"), plan), "limits");
  if (!Array.isArray(limits))
    throw new CommandError(`${file} has no plan ${plan}; write it as plans: { ${plan}: { limits: [ … ] } }`);
  return limits.map((limit: unknown, index): WrittenPlanLimit => {
    const policy = field(limit, "policy");
    const name = field(limit, "limit");
    const windows = field(limit, "windows");
    if (typeof policy !== "string" || windows === undefined || (name !== undefined && typeof name !== "string")) {
      const path = ["plans", plan, "limits", index];
      const { place } = withPlace({ path, message: "" });
      const where = place === undefined ? file : `${file}:${place.line}:${place.column}`;
      throw new CommandError(`${where}: ${renderPath(path)} should be { policy: …, limit: …, windows: [ … ] }`);
    }
    return {
      policy,
      ...(name === undefined ? undefined : { limit: name }),
      windows: Array.isArray(windows) ? windows : [windows],
    };
  });
}

function field(value: unknown, name: string): unknown {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}
