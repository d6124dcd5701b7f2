import type { NodesBody } from "@sluice/protocol/admin";
import { printable } from "sluice/internal";
import { createProgressLine, type ProgressLine, renderBar } from "../terminal/progress-line.ts";
import { renderSpan } from "../terminal/render-time.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import type { ControlSession } from "./control-session.ts";

/** What waiting needs of a session. */
export interface WaitSession extends Pick<ControlSession, "terminal" | "nowMs" | "sleep"> {
  readonly api: { readonly nodes: Pick<ControlSession["api"]["nodes"], "list"> };
}

const lookEveryMs = 250;
const awayLookEveryMs = 1_000;

/**
 * Waits until every node that is alive decides by a generation, or a later one. 6 if they do not in time, or if there is
 * no way to know: the change was made, and is not undone by that.
 */
export async function waitForNodes(generation: number, timeoutMs: number, session: WaitSession): Promise<ExitCode> {
  const { api, terminal, nowMs, sleep } = session;
  const line = createProgressLine(terminal.stderr);
  const untilMs = nowMs() + timeoutMs;
  for (;;) {
    const nodes = await askWhileWaiting(() => api.nodes.list(), line, untilMs, session);
    if (nodes === undefined) return 6;
    const reach = findReach(nodes, generation);
    line.show(renderReach(reach, generation));
    if (reach.alive > 0 && reach.there === reach.alive) {
      line.end();
      return 0;
    }
    if (nowMs() >= untilMs) {
      line.end();
      terminal.stderr.write(renderLate(reach, generation, timeoutMs));
      return 6;
    }
    await sleep(lookEveryMs);
  }
}

/** Waiting goes on while the control plane is unavailable. Undefined, and the reason is shown, if there is no answer. */
export async function askWhileWaiting<T>(
  ask: () => Promise<T>,
  line: ProgressLine,
  untilMs: number,
  { nowMs, sleep, terminal }: Pick<ControlSession, "nowMs" | "sleep" | "terminal">,
): Promise<T | undefined> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      if (error.exitCode !== 5 || nowMs() >= untilMs) {
        line.end();
        terminal.stderr.write(`What was done stays done, but cannot be waited for: ${error.message}\n`);
        return undefined;
      }
      line.show("the control plane does not answer; waiting for it");
    }
    await sleep(awayLookEveryMs);
  }
}

export interface Reach {
  readonly alive: number;
  /** How many of them have it. */
  readonly there: number;
  readonly late: readonly { readonly name: string; readonly generation: number }[];
}

export function findReach({ nodes }: NodesBody, generation: number): Reach {
  const alive = nodes.filter((node) => node.alive);
  const late = alive.filter((node) => node.generation < generation);
  return { alive: alive.length, there: alive.length - late.length, late };
}

export function renderReach({ alive, there }: Reach, generation: number): string {
  return `nodes ${renderBar(alive === 0 ? 0 : there / alive)} ${there} of ${alive} at generation ${generation}`;
}

function renderLate({ alive, late }: Reach, generation: number, timeoutMs: number): string {
  const after = `after ${renderSpan(timeoutMs)}`;
  if (alive === 0) return `No node reports its state ${after}. sluice nodes lists those that did.\n`;
  const names = late.slice(0, 10).map((node) => `${printable(node.name)} (generation ${node.generation})`);
  const more = late.length > names.length ? ` and ${late.length - names.length} more` : "";
  return `Not everywhere ${after}: ${names.join(", ")}${more} should decide by generation ${generation}. See sluice nodes.\n`;
}
