import {
  type BodyOf,
  type BodyShape,
  boolean,
  choice,
  described,
  fromView,
  integer,
  listOf,
  number,
  text,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";

/** The order of hot keys. */
export const hotKeyOrders = ["rate", "denials"] as const;
export type HotKeyOrder = (typeof hotKeyOrders)[number];

/** How many hot keys an answer has, unless the request says so, and how many at most. */
export const usualHotKeys = 20;
export const mostHotKeys = 100;

/** To a hundredth. */
const perSecond: BodyShape<number, number> = fromView(number, (rate: number) => Math.round(rate * 100) / 100);

/** A counter, and how often it is checked. `parts` of a view is how many nodes report it. */
export const hotKey = fromView(
  objectOf({
    policy: text,
    scope: described(text, "The limit's name, else its dimensions."),
    subject: described(text, "At most 256 characters; a shortened one ends in `…`."),
    per_second: described(perSecond, "Recent decisions. Too high by at most `error_per_second`."),
    denied_per_second: described(perSecond, "Denials among them."),
    error_per_second: described(perSecond, "How many of the decisions may be another subject's."),
    nodes: described(integer, "How many nodes report it."),
  }),
  ({ parts, ...key }: HotKeyView) => ({ ...key, nodes: parts }),
);
export type HotKeyBody = BodyOf<typeof hotKey>;

interface HotKeyView extends Rates {
  readonly policy: string;
  readonly scope: string;
  readonly subject: string;
  readonly errorPerSecond: number;
  readonly parts: number;
}

interface Rates {
  readonly perSecond: number;
  readonly deniedPerSecond: number;
}

/** The merged reports of nodes. */
export interface HotKeysView {
  readonly by: HotKeyOrder;
  readonly keys: readonly HotKeyView[];
  readonly totals: Rates;
  readonly reported: number;
  readonly silent: number | undefined;
  readonly oldestMs: number;
}

const hotKeysFields = {
  by: choice(hotKeyOrders),
  items: listOf(hotKey),
  total: described(
    objectOf({ per_second: perSecond, denied_per_second: perSecond }),
    "All counters together; a decision counts for each of its limits.",
  ),
  nodes: objectOf({
    reported: described(integer, "How many nodes these are the sums of."),
    silent: optional(
      described(integer, "Live nodes that reported nothing. Absent: unknown, because the policy store is unavailable."),
    ),
    oldest_ms: described(integer, "The age of the oldest report."),
  }),
};

function renderItems({ by, keys, totals, reported, silent, oldestMs }: HotKeysView) {
  return { by, items: keys, total: totals, nodes: { reported, silent, oldestMs: Math.round(oldestMs) } };
}

/** The hot keys of all nodes. */
export const hotKeys = fromView(objectOf(hotKeysFields), renderItems);
export type HotKeysBody = BodyOf<typeof hotKeys>;

/** The hot keys of one server. */
export const hotKeysHere = fromView(
  objectOf({
    ...hotKeysFields,
    hashed: described(boolean, "Whether subjects are hashes, because there was no token."),
  }),
  ({ hashed, ...view }: HotKeysView & { readonly hashed: boolean }) => ({ ...renderItems(view), hashed }),
);
export type HotKeysHereBody = BodyOf<typeof hotKeysHere>;
