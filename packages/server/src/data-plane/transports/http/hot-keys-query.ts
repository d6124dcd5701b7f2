import { type HotKeyOrder, hotKeyOrders } from "@sluice/protocol/http";
import { choice, described, type Shape } from "sluice";
import { mostHotKeys, usualHotKeys } from "../../../observe/hot-keys/merge-hot-keys.ts";
import { wholeNumber } from "./read-query.ts";

/** Parameters of every request for hot keys. */
export const hotKeysQuery: { readonly by: Shape<HotKeyOrder>; readonly count: Shape<number> } = {
  by: described(choice(hotKeyOrders), "rate: by decisions. denials: by denials", {
    default: "rate",
  }),
  count: described(wholeNumber({ min: 1, max: mostHotKeys }), "Most items of the answer", { default: usualHotKeys }),
};
