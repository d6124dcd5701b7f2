import { renderDuration } from "./parse-duration.ts";
import { defaultBurst } from "./parse-window.ts";
import type { Window } from "./policy.ts";

/** `100/s burst 200`, as people write it. `parseWindow` reads it back, except for a name, which it leaves out. */
export function renderWindow({ limit, per, burst }: Window): string {
  if (per.kind === "never") return `${renderAmount(limit)} once`;
  if (per.kind === "calendar") return `${renderAmount(limit)}/${per.unit} in ${per.timeZone}`;
  const length = renderDuration(per.ms).replace(/^1(?=[a-z])/, "");
  const beyond = burst === defaultBurst(limit) ? "" : ` burst ${renderAmount(burst)}`;
  return `${renderAmount(limit)}/${length}${beyond}`;
}

function renderAmount(amount: number): string {
  if (amount >= 1e6 && amount % 1e5 === 0) return `${amount / 1e6}M`;
  if (amount >= 1e4 && amount % 1e3 === 0) return `${amount / 1e3}k`;
  const [digits = "", exponent] = String(amount).split("e-");
  return exponent === undefined ? digits : `0.${"0".repeat(Number(exponent) - 1)}${digits.replace(".", "")}`;
}
