/** A node, as one node of a cluster sees it. */
export interface SeenNode {
  readonly id: string;
  readonly port: number;
  readonly flags: readonly string[];
  /** Of the primary that it replicates. */
  readonly primaryId: string | undefined;
  /** First and last of each range. */
  readonly slots: readonly (readonly [from: number, to: number])[];
}

/** Reads the reply to `CLUSTER NODES`: `id ip:port@bus flags primary ping pong epoch link slot…`, a line a node. */
export function parseClusterView(reply: string): readonly SeenNode[] {
  return reply
    .trim()
    .split("\n")
    .map((line) => {
      const [id = "", address = "", flags = "", primaryId = "-", , , , , ...slots] = line.split(" ");
      return {
        id,
        port: Number(/:(\d+)@/.exec(address)?.[1]),
        flags: flags.split(","),
        primaryId: primaryId === "-" ? undefined : primaryId,
        // Slots in migration, as `[93->-id]`, are listed with those that the node owns.
        slots: slots.filter((slot) => !slot.startsWith("[")).map(parseRange),
      };
    });
}

function parseRange(text: string): readonly [number, number] {
  const [from, to = from] = text.split("-").map(Number);
  return [Number(from), Number(to)];
}

export function findOwner(view: readonly SeenNode[], slot: number): SeenNode | undefined {
  return view.find((node) => node.slots.some(([from, to]) => from <= slot && slot <= to));
}

/** The same for two views that give every slot the same owner. */
export function findOwners(view: readonly SeenNode[]): string {
  return view
    .flatMap(({ id, slots }) => slots.map(([from, to]) => `${from}-${to} ${id}`))
    .sort()
    .join("\n");
}
