import type { Limit } from "./policy.ts";

/** The limit's name, else its dimensions: what decisions, metrics and people know it by. */
export function limitScope({ name, by }: Pick<Limit, "name" | "by">): string {
  return name ?? (by.length === 0 ? "global" : by.join(","));
}
