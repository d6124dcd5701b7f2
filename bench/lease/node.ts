// One contender in a separate process, so that its CPU time can be measured; also one of several nodes over the same server. It carries
// out its parent's orders, and answers with the results.
import { createContender, type Kind, type RunningContender, type StoreUsage } from "./contenders.ts";
import { type Driven, drive } from "./drive.ts";
import { type Saturated, type Saturation, saturate } from "./saturate.ts";
import { drawSubjects, policiesFor, type WhaleWay, whaleNumber } from "./workload.ts";

export type Order =
  | {
      readonly order: "open";
      readonly kind: Kind;
      readonly url: string;
      readonly prefix: string;
      readonly way: WhaleWay;
      /** The share of all limits, and of each limit for its burst. */
      readonly share: number;
      readonly burstShare: number;
      /** The seed of this node's requests; other nodes have other seeds. */
      readonly seed: number;
      /** How many requests are drawn before they repeat: a power of 2. */
      readonly draws: number;
    }
  | { readonly order: "drive"; readonly forMs: number; readonly mostPerSecond: number; readonly inFlight: number }
  | { readonly order: "report" }
  | ({ readonly order: "saturate" } & Saturation)
  | { readonly order: "close" };

/** A node's work so far. */
export interface NodeUsage extends StoreUsage {
  readonly whaleDecisions: number;
}

/** An answer, or why there is none. */
export type Reply =
  | { readonly kind: "driven"; readonly driven: Driven }
  | { readonly kind: "usage"; readonly usage: NodeUsage }
  | { readonly kind: "saturated"; readonly saturated: Saturated }
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly message: string };

let contender: RunningContender | undefined;
let numbers: Int32Array = new Int32Array(1);
let from = 0;
let whaleDecisions = 0;

async function carryOut(order: Order): Promise<Reply> {
  if (order.order === "open") {
    const { share, burstShare, seed, draws, ...options } = order;
    contender = await createContender({ ...options, policies: policiesFor(options.way, share, burstShare) });
    numbers = drawSubjects(seed, draws);
    from = 0;
    whaleDecisions = 0;
    return { kind: "done" };
  }
  if (contender === undefined) throw new Error("the node must be opened first");
  switch (order.order) {
    case "drive": {
      const driven = await drive(contender, { ...order, numbers, from });
      whaleDecisions += countWhale(from, from + driven.decisions);
      from += driven.decisions;
      return { kind: "driven", driven };
    }
    case "report":
      return { kind: "usage", usage: { ...contender.usage(), whaleDecisions } };
    case "saturate":
      return { kind: "saturated", saturated: await saturate(contender, order) };
    case "close":
      await contender.close();
      contender = undefined;
      return { kind: "done" };
  }
}

function countWhale(start: number, end: number): number {
  let count = 0;
  for (let i = start; i < end; i++) if (numbers[i & (numbers.length - 1)] === whaleNumber) count += 1;
  return count;
}

process.on("message", (order: Order) => {
  carryOut(order).then(
    (reply) => process.send!(reply),
    (error: Error) => process.send!({ kind: "failed", message: String(error.stack ?? error) } satisfies Reply),
  );
});
process.send!({ kind: "done" } satisfies Reply);
