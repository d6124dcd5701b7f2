import type { NodeBody, NodesBody } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import type { Paint } from "../terminal/paint.ts";
import { renderTable } from "../terminal/render-table.ts";
import { renderMoment } from "../terminal/render-time.ts";
import type { ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";

/** `sluice nodes`: which servers there are, and by which generation each decides. 1 where one that is alive is behind. */
export async function showNodes(session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, nowMs, width, paint } = session;
  const nodes = await api.nodes.list();
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
      renderState(node),
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

function renderState({ alive, current }: NodeBody): string {
  if (!alive) return "gone";
  return current ? "current" : "behind";
}

/** `sluice nodes` */
export function addNodesCommand(program: Command, run: RunOnControlPlane): void {
  withExamples(
    controlCommand(program, "nodes", "List servers, and by which generation each decides."),
    "Exit code 1 where one that is alive does not decide by the newest generation.",
    "sluice nodes",
  ).action((options: ControlOptions) => run(options, showNodes));
}
