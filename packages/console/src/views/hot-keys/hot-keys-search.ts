import { oneOf, type Search, textParam } from "../../url/search-params.ts";

export const hotKeyOrders = ["rate", "denials"] as const;
export type HotKeyOrder = (typeof hotKeyOrders)[number];

export interface HotKeysSearch {
  readonly by?: HotKeyOrder | undefined;
  /** The node whose report alone is shown. */
  readonly node?: string | undefined;
}

export function parseHotKeysSearch({ by, node }: Search): HotKeysSearch {
  const order = oneOf(by, hotKeyOrders, "rate");
  return { by: order === "rate" ? undefined : order, node: textParam(node) };
}
