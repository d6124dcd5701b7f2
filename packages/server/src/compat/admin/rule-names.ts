/**
 * The names of the rules of one policy, in its description: the first line is the name of the rule without a tier, and
 * a line `[premium] Orders of premium users` names the rule of a tier. Other lines belong to the policy, and are kept.
 */
export interface RuleNames {
  readonly own: string | undefined;
  readonly byTier: ReadonlyMap<string, string>;
  readonly otherLines: readonly string[];
}

/** Names of tiers contain no bracket. */
const tierLine = /^\[([^\]]+)\] (.+)$/;

export function readRuleNames(description: string | undefined, tiers: readonly string[]): RuleNames {
  const [own = "", ...lines] = (description ?? "").split("\n");
  const byTier = new Map<string, string>();
  const otherLines: string[] = [];
  for (const line of lines) {
    const [, tier = "", name = ""] = tierLine.exec(line) ?? [];
    if (tiers.includes(tier) && !byTier.has(tier)) byTier.set(tier, name);
    else otherLines.push(line);
  }
  return { own: own === "" ? undefined : own, byTier, otherLines };
}

/** The description; undefined if it is empty. */
export function renderRuleNames({ own, byTier, otherLines }: RuleNames): string | undefined {
  const lines = [own ?? "", ...[...byTier].map(([tier, name]) => `[${tier}] ${name}`), ...otherLines];
  const description = lines.join("\n");
  return description === "" ? undefined : description;
}
