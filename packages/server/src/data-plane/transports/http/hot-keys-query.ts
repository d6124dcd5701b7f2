import { type HotKeyOrder, hotKeyOrders, mostHotKeys, usualHotKeys } from "@sluice/protocol/http";
import { choice, described, type Shape } from "sluice/shape";
import { wholeNumber } from "./read-query.ts";

/** Parameters of every request for hot keys. */
export const hotKeysQuery: { readonly by: Shape<HotKeyOrder>; readonly count: Shape<number> } = {
  by: described(choice(hotKeyOrders), "rate: by decisions. denials: by denials", {
    default: "rate",
  }),
  count: described(wholeNumber({ min: 1, max: mostHotKeys }), "The most items in the answer", {
    default: usualHotKeys,
  }),
};
