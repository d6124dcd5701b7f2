import type { NodeRecord } from "@sluice/sql";
import { SluiceError } from "sluice";
import type { Actor } from "../../data-plane/access/actor.ts";
import { decodeReport } from "../../observe/hot-keys/hot-key-report.ts";
import { mergeHotKeys, type NodeHotKeys } from "../../observe/hot-keys/merge-hot-keys.ts";
import { notFound } from "../control-errors.ts";
import type { NodeControl, NodeView } from "../control-plane.ts";
import { readStore } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";

/** Nodes report every few seconds. */
const aliveForMs = 15_000;

/** The field of a node's details that holds its report of hot keys. */
export const hotKeysDetail = "hot_keys";

export function createNodeControl(context: ControlContext): NodeControl {
  /** Nodes that are alive, with their reports of hot keys; undefined while the policy store is unavailable. */
  async function readReports(actor: Actor): Promise<readonly Reported[] | undefined> {
    try {
      return await readStore(context, actor, { action: "hot_key.list", kind: "hot_key", target: "" }, async (view) => {
        const nowMs = await view.nowMs();
        return (await view.nodes()).filter(isAliveAt(nowMs)).map((record) => reportedBy(record, nowMs));
      });
    } catch (error) {
      if (error instanceof SluiceError && error.code === "policy_store_unavailable") return undefined;
      throw error;
    }
  }

  return {
    async hotKeys(actor, { node, ...request } = {}) {
      const [reports, own] = await Promise.all([readReports(actor), context.hotKeys()]);
      // This node's current report is newer than its stored one.
      const live = new Set(own.map((reporting) => reporting.node.id));
      const others = (reports ?? []).filter((reporting) => !live.has(reporting.node.id));
      const isSelected = ({ node: { id, name } }: Pick<NodeHotKeys, "node">): boolean =>
        node === undefined || id === node || name === node;
      const selected = [...own, ...others].filter(isSelected);
      if (selected.length === 0 && node !== undefined) throw notFound(`node ${JSON.stringify(node)}`);
      const reporting = selected.filter((one): one is NodeHotKeys => one.report !== undefined);
      return {
        ...mergeHotKeys(reporting, request),
        silent: reports === undefined ? undefined : selected.length - reporting.length,
      };
    },
    list: (actor) =>
      readStore(context, actor, { action: "node.list", kind: "node", target: "" }, async (view) => {
        const { generation } = await view.pulse();
        // By the store's clock, because those of nodes differ.
        const nowMs = await view.nowMs();
        return { generation, nodes: (await view.nodes()).map((record) => nodeView(record, generation, nowMs)) };
      }),
  };
}

/** A node that is alive. If it runs another version, it may report no hot keys. */
type Reported = Omit<NodeHotKeys, "report"> & { readonly report: NodeHotKeys["report"] | undefined };

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
