import type { Limit } from "./policy.ts";

/** The limit's name, else its dimensions: its name in decisions, metrics and text for people. */
export function limitScope({ name, by }: Pick<Limit, "name" | "by">): string {
  return name ?? (by.length === 0 ? "global" : by.join(","));
}
