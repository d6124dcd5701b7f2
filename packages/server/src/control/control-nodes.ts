import type { NodeRecord } from "@sluice/sql";
import { look } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import type { NodeControl, NodeView } from "./control-plane.ts";

/** Nodes tell of themselves every few seconds. */
const aliveForMs = 15_000;

export function createNodeControl(context: ControlContext): NodeControl {
  return {
    list: (actor) =>
      look(context, actor, { action: "node.list", kind: "node", target: "" }, async (view) => {
        const { generation } = await view.pulse();
        // Nodes are seen by the store's clock, because theirs differ.
        const nowMs = await view.nowMs();
        return { generation, nodes: (await view.nodes()).map((record) => nodeView(record, generation, nowMs)) };
      }),
  };
}

function nodeView({ details, ...record }: NodeRecord, generation: number, nowMs: number): NodeView {
  return {
    ...record,
    alive: nowMs - record.seenMs <= aliveForMs,
    current: record.generation >= generation,
    details: readDetails(details),
  };
}

function readDetails(text: string): NodeView["details"] {
  try {
    const details: unknown = JSON.parse(text);
    return typeof details === "object" && details !== null ? (details as NodeView["details"]) : {};
  } catch {
    return {};
  }
}
