// One contender in a process of its own, so that its processor time is its own, and one node of several over the same server: does what
// its parent orders, and answers with what it came to.
import { createContender, type Kind, type RunningContender, type StoreFigures } from "./contenders.ts";
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
      /** Of all limits, and of each for its burst. */
      readonly share: number;
      readonly burstShare: number;
      /** Whose requests these are: others have other seeds. */
      readonly seed: number;
      /** How many are drawn before they come again: a power of 2. */
      readonly draws: number;
    }
  | { readonly order: "drive"; readonly forMs: number; readonly mostPerSecond: number; readonly inFlight: number }
  | { readonly order: "tell" }
  | ({ readonly order: "saturate" } & Saturation)
  | { readonly order: "close" };

/** What a node has done so far. */
export interface NodeFigures extends StoreFigures {
  readonly whaleDecisions: number;
}

/** An answer, or why there is none. */
export type Reply =
  | { readonly kind: "driven"; readonly driven: Driven }
  | { readonly kind: "figures"; readonly figures: NodeFigures }
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
  if (contender === undefined) throw new Error("a node is opened first");
  switch (order.order) {
    case "drive": {
      const driven = await drive(contender, { ...order, numbers, from });
      whaleDecisions += countWhale(from, from + driven.decisions);
      from += driven.decisions;
      return { kind: "driven", driven };
    }
    case "tell":
      return { kind: "figures", figures: { ...contender.figures(), whaleDecisions } };
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
