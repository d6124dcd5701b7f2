import { choice, described, type JsonSchema, type Shape } from "sluice";
import { type HotKeyOrder, hotKeyOrders } from "../../../observe/hot-keys/hottest.ts";
import { type MergedHotKeys, mostHotKeys, usualHotKeys } from "../../../observe/hot-keys/merge-hot-keys.ts";
import type { ShowSubject } from "../../../observe/telemetry/hide-subjects.ts";
import { wholeNumber } from "./read-query.ts";
import { integer, list, number, object, text } from "./schema-parts.ts";

/** Parameters of every question for hot keys. */
export const hotKeysQuery: { readonly by: Shape<HotKeyOrder>; readonly count: Shape<number> } = {
  by: described(choice(hotKeyOrders), "rate: those that are decided most. denials: those that are denied most", {
    default: "rate",
  }),
  count: described(wholeNumber({ min: 1, max: mostHotKeys }), "Most items of the answer", { default: usualHotKeys }),
};

export interface HotKeysBody {
  readonly by: HotKeyOrder;
  readonly items: readonly HotKeyBody[];
  readonly total: { readonly per_second: number; readonly denied_per_second: number };
  readonly nodes: { readonly told: number; readonly silent?: number | undefined; readonly oldest_ms: number };
}

export interface HotKeyBody {
  readonly policy: string;
  readonly scope: string;
  readonly subject: string;
  readonly per_second: number;
  readonly denied_per_second: number;
  readonly error_per_second: number;
  readonly nodes: number;
}

export function hotKeysBody(
  { by, keys, totals, told, oldestMs, silent }: MergedHotKeys & { readonly silent?: number | undefined },
  show: ShowSubject = (subject) => subject,
): HotKeysBody {
  return {
    by,
    items: keys.map((key) => ({
      policy: key.policy,
      scope: key.scope,
      subject: show(key.subject),
      per_second: rounded(key.perSecond),
      denied_per_second: rounded(key.deniedPerSecond),
      error_per_second: rounded(key.errorPerSecond),
      nodes: key.parts,
    })),
    total: { per_second: rounded(totals.perSecond), denied_per_second: rounded(totals.deniedPerSecond) },
    nodes: { told, silent, oldest_ms: Math.round(oldestMs) },
  };
}

/** To a hundredth. */
function rounded(perSecond: number): number {
  return Math.round(perSecond * 100) / 100;
}

const properties: Readonly<Record<string, JsonSchema>> = {
  by: { enum: [...hotKeyOrders] },
  items: list(
    object({
      policy: text,
      scope: { type: "string", description: "The limit's name, else its dimensions." },
      subject: { type: "string", description: "Cut to 256 characters; what was cut ends in `…`." },
      per_second: { type: "number", description: "Decisions, of late. Too high by at most `error_per_second`." },
      denied_per_second: { type: "number", description: "Denials among them." },
      error_per_second: { type: "number", description: "How many of the decisions may be another subject's." },
      nodes: { type: "integer", description: "How many nodes tell of it." },
    }),
  ),
  total: {
    description: "All counters together; a decision counts for each of its limits.",
    ...object({ per_second: number, denied_per_second: number }),
  },
  nodes: object(
    {
      told: { type: "integer", description: "How many nodes these are the sums of." },
      silent: {
        type: "integer",
        description: "Nodes that are alive and told nothing. Absent: nobody knows, because the store is away, or none.",
      },
      oldest_ms: { ...integer, description: "How old the oldest of what they told is." },
    },
    "silent",
  ),
};

/** Of all nodes, and of this server. */
export const hotKeysSchema: JsonSchema = object(properties);
export const hotKeysHereSchema: JsonSchema = object({
  ...properties,
  hashed: { type: "boolean", description: "Whether subjects are hashes, because there was no token." },
});
