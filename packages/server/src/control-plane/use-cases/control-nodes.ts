import type { NodeRecord } from "@sluice/sql";
import { SluiceError } from "sluice";
import type { Actor } from "../../data-plane/access/actor.ts";
import { decodeReport } from "../../observe/hot-keys/hot-key-report.ts";
import { mergeHotKeys, type ToldHotKeys } from "../../observe/hot-keys/merge-hot-keys.ts";
import { notFound } from "../control-errors.ts";
import type { NodeControl, NodeView } from "../control-plane.ts";
import { look } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";

/** Nodes tell of themselves every few seconds. */
const aliveForMs = 15_000;

/** Under which name a node's details hold its report of hot keys. */
export const hotKeysDetail = "hot_keys";

export function createNodeControl(context: ControlContext): NodeControl {
  /** Nodes that are alive, with what they told of hot keys; undefined while the policy store cannot be asked. */
  async function readReports(actor: Actor): Promise<readonly Reported[] | undefined> {
    try {
      return await look(context, actor, { action: "hot_key.list", kind: "hot_key", target: "" }, async (view) => {
        const nowMs = await view.nowMs();
        return (await view.nodes()).filter(isAliveAt(nowMs)).map((record) => reportedBy(record, nowMs));
      });
    } catch (error) {
      if (error instanceof SluiceError && error.code === "policy_store_unavailable") return undefined;
      throw error;
    }
  }

  return {
    async hotKeys(actor, { node, ...wish } = {}) {
      const [reports, own] = await Promise.all([readReports(actor), context.hotKeys()]);
      // Who is asked here and now knows better than what it wrote down some seconds ago.
      const live = new Set(own.map((told) => told.node.id));
      const others = (reports ?? []).filter((told) => !live.has(told.node.id));
      const isMeant = ({ node: { id, name } }: Pick<ToldHotKeys, "node">): boolean =>
        node === undefined || id === node || name === node;
      const meant = [...own, ...others].filter(isMeant);
      if (meant.length === 0 && node !== undefined) throw notFound(`node ${JSON.stringify(node)}`);
      const told = meant.filter((one): one is ToldHotKeys => one.report !== undefined);
      return {
        ...mergeHotKeys(told, wish),
        silent: reports === undefined ? undefined : meant.length - told.length,
      };
    },
    list: (actor) =>
      look(context, actor, { action: "node.list", kind: "node", target: "" }, async (view) => {
        const { generation } = await view.pulse();
        // Nodes are seen by the store's clock, because theirs differ.
        const nowMs = await view.nowMs();
        return { generation, nodes: (await view.nodes()).map((record) => nodeView(record, generation, nowMs)) };
      }),
  };
}

/** A node that is alive. It may tell nothing of hot keys, being of another version. */
type Reported = Omit<ToldHotKeys, "report"> & { readonly report: ToldHotKeys["report"] | undefined };

function reportedBy({ id, name, seenMs, details }: NodeRecord, nowMs: number): Reported {
  const { [hotKeysDetail]: report } = readDetails(details);
  return { node: { id, name }, ageMs: Math.max(0, nowMs - seenMs), report: decodeReport(report) };
}

function isAliveAt(nowMs: number): (record: NodeRecord) => boolean {
  return ({ seenMs }) => nowMs - seenMs <= aliveForMs;
}

function nodeView({ details, ...record }: NodeRecord, generation: number, nowMs: number): NodeView {
  const { [hotKeysDetail]: _report, ...shown } = readDetails(details);
  return {
    ...record,
    alive: isAliveAt(nowMs)({ details, ...record }),
    current: record.generation >= generation,
    details: shown,
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
