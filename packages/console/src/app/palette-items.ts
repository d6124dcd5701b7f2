import type { IconName } from "../ui/icon.tsx";

export interface PaletteItem {
  readonly id: string;
  readonly group: "Views" | "Policies" | "Subjects" | "Actions";
  readonly label: string;
  readonly about?: string | undefined;
  readonly icon: IconName;
  /** Further words by which it is found. */
  readonly words?: string | undefined;
  readonly href?: string | undefined;
  readonly run?: (() => void) | undefined;
}

/** How well an item answers a query: higher is better, 0 is not at all. Every word must be in it. */
export function scoreItem(item: Pick<PaletteItem, "label" | "words" | "about">, query: string): number {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const label = item.label.toLowerCase();
  const rest = `${item.about ?? ""} ${item.words ?? ""}`.toLowerCase();
  let score = 1;
  for (const word of words) {
    if (label === word) score += 100;
    else if (label.startsWith(word)) score += 40;
    else if (new RegExp(`(^|[^a-z0-9])${escapePattern(word)}`).test(label)) score += 20;
    else if (label.includes(word)) score += 10;
    else if (rest.includes(word)) score += 2;
    else return 0;
  }
  return score;
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** At most `most` of each group, the best first; groups stay together, in the order of their best item. */
export function findItems(items: readonly PaletteItem[], query: string, most = 8): readonly PaletteItem[] {
  const scored = items
    .map((item) => ({ item, score: scoreItem(item, query) }))
    .filter(({ score }) => score > 0)
    .toSorted((one, other) => other.score - one.score);
  const groups = Map.groupBy(scored, ({ item }) => item.group);
  return [...groups.values()].flatMap((own) => own.slice(0, most).map(({ item }) => item));
}
