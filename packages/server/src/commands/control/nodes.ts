import type { NodeBody, NodesBody } from "@sluice/protocol/admin";
import type { ExitCode } from "../terminal.ts";
import type { ControlSession } from "./control-session.ts";
import type { Paint } from "./paint.ts";
import { renderMoment } from "./render-moment.ts";
import { renderTable } from "./render-table.ts";
import { writeJson } from "./write-json.ts";

/** `sluice nodes`: which servers there are, and by which generation each decides. 1 where one that is alive is behind. */
export async function showNodes(session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, nowMs, width, paint } = session;
  const nodes = await api.nodes();
  if (json) writeJson(session, nodes);
  else terminal.stdout.write(renderNodes(nodes, nowMs(), width, paint));
  return nodes.nodes.some((node) => node.alive && !node.current) ? 1 : 0;
}

export function renderNodes(
  { generation, nodes }: NodesBody,
  nowMs: number,
  width: number | undefined,
  paint: Paint,
): string {
  const alive = nodes.filter((node) => node.alive);
  const current = alive.filter((node) => node.current);
  const summary = `Generation ${generation}: ${current.length} of ${alive.length} live nodes decide by it.\n`;
  if (nodes.length === 0) return summary;
  const paints: Readonly<Record<string, (text: string) => string>> = {
    current: paint.good,
    behind: paint.careful,
    gone: paint.faint,
  };
  const table = renderTable(
    [
      { title: "node", flexible: true },
      { title: "state", paint: (state, shown) => paints[state]?.(shown) ?? shown },
      { title: "generation", align: "right" },
      { title: "since" },
      { title: "seen" },
      { title: "started" },
      { title: "version" },
      { title: "id" },
    ],
    nodes.map((node) => [
      node.name,
      stateOf(node),
      String(node.generation),
      renderMoment(node.applied_ms, nowMs),
      renderMoment(node.seen_ms, nowMs),
      renderMoment(node.started_ms, nowMs),
      node.version,
      node.id,
    ]),
    width,
  );
  return `${table}\n${summary}`;
}

function stateOf({ alive, current }: NodeBody): string {
  if (!alive) return "gone";
  return current ? "current" : "behind";
}
