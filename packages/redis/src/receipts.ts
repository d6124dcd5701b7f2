import type { Receipt, ResolvedLimit } from "sluice/store";
import { type Call, encodeGiveBack } from "./ask/encode-call.ts";
import type { AskCounts, ScriptTuning } from "./ask/lane.ts";
import type { Held } from "./ask/question.ts";
import { callScript } from "./ask/script-calls.ts";
import { scripts } from "./scripts.generated.ts";
import type { PlacedLane, Site } from "./site.ts";
import type { Sites } from "./sites.ts";
import type { Shard } from "./topology/topology.ts";

/** A receipt has one part for each place that a request was counted in. */
const mostParts = 100;

export interface ReceiptsOptions {
  readonly sites: Sites;
  readonly counts: AskCounts;
  /** How long a server may take. */
  readonly patienceMs: number;
  readonly tune: ScriptTuning | undefined;
}

/**
 * Gives takes back: those of callers by their receipt, `r<site>.<lane>.<name>` for each place, joined by `+`; and those
 * of a partly taken request, by their answers (`Held`).
 */
export class Receipts {
  readonly #options: ReceiptsOptions;

  constructor(options: ReceiptsOptions) {
    this.#options = options;
  }

  /** A receipt or a hold's id that says where it is valid, from its name in a lane. */
  render({ site, index }: PlacedLane, name: string | undefined, kind: "r" | "h" = "r"): Receipt | undefined {
    return name === undefined ? undefined : `${kind}${this.#options.sites.siteNumber(site)}.${index}.${name}`;
  }

  /** A place that only noted distinct values has no receipt. */
  join(receipts: readonly (Receipt | undefined)[]): Receipt | undefined {
    const known = receipts.filter((receipt) => receipt !== undefined);
    return known.length === 0 ? undefined : known.join("+");
  }

  /** Returns whether anything could still be given back. */
  async give(receipt: Receipt): Promise<boolean> {
    const parts = receipt.split("+");
    if (parts.length > mostParts) return false;
    const given = await Promise.all(parts.map((one) => this.giveOne(one)));
    return given.includes(true);
  }

  /** The same for the receipt of one place. */
  async giveOne(receipt: Receipt): Promise<boolean> {
    const [, number, index, name] = /^r(\d+)\.(\d+)\.([\w-]+)$/.exec(receipt) ?? [];
    const site = this.#options.sites.findByNumber(Number(number));
    const lane = site?.lanes[Number(index)];
    if (site === undefined || lane === undefined || name === undefined) return false;
    return this.#call(site, lane.slot, "give", { keys: [lane.names.receipt(name)], args: [] });
  }

  /** Asks only the server that took it, as long as that remembers it. */
  async giveHeld(lane: PlacedLane, limits: readonly ResolvedLimit[], held: Held): Promise<boolean> {
    const call = encodeGiveBack(limits, held, lane.names);
    const untilMs = performance.now() + this.#options.patienceMs;
    for (;;) {
      try {
        return await this.#call(lane.site, lane.slot, "giveArrivals", call, (shard) => isHeldBy(held, shard));
      } catch (error) {
        if (!isMoving(error) || performance.now() > untilMs) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async #call(
    site: Site,
    slot: number,
    name: "give" | "giveArrivals",
    { keys, args }: Call,
    isAsked: (shard: Shard) => boolean = () => true,
  ): Promise<boolean> {
    const { tune, counts, patienceMs } = this.#options;
    const script = (tune?.scripts ?? scripts)[name];
    const whole = tune === undefined ? args : [...args, ...tune.extraArguments()];
    const onLoad = (): void => {
      counts.loads += 1;
    };
    const reply = await site.send(slot, patienceMs, async (shard) =>
      isAsked(shard) ? callScript(shard, slot, script, keys, whole, onLoad) : undefined,
    );
    return Array.isArray(reply) && reply[2] === 1;
  }
}

/** Whether this is the server that took it, on the same connection. */
function isHeldBy({ shard: guard, connections }: Held, shard: Shard): boolean {
  return guard.shard === shard && guard.connections === connections;
}

/** Keys of one call are on two servers, because their slot is moving. Nothing was done. */
function isMoving(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof Error && error.cause.message.startsWith("TRYAGAIN");
}
