import type { RolloutBody } from "@sluice/protocol/admin";
import { printable } from "sluice/internal";
import { createProgressLine } from "../terminal/progress-line.ts";
import { renderSpan } from "../terminal/render-time.ts";
import type { ExitCode } from "../terminal/terminal.ts";
import type { ControlSession } from "./control-session.ts";
import { hasEnded, renderRolloutProgress } from "./render-rollout.ts";
import { askWhileWaiting, findReach, type WaitSession, waitForNodes } from "./wait-for-nodes.ts";

interface RolloutSession extends WaitSession {
  readonly api: WaitSession["api"] & { readonly rollouts: Pick<ControlSession["api"]["rollouts"], "get"> };
}

const lookEveryMs = 1_000;
/** Nodes that are alive apply a change within a second or a few. */
const nodesWithinMs = 60_000;

/**
 * Waits until a rollout has ended and every node knows: 0 where the new version is in force, 1 where the old one is again, 6 where
 * it takes longer than `timeoutMs`, or there is no way to know. With the rollout as it was last seen.
 */
export async function waitForRollout(
  id: string,
  timeoutMs: number | undefined,
  session: RolloutSession,
): Promise<{ readonly exitCode: ExitCode; readonly rollout: RolloutBody | undefined }> {
  const { api, terminal, nowMs, sleep } = session;
  const line = createProgressLine(terminal.stderr);
  const untilMs = nowMs() + (timeoutMs ?? Number.POSITIVE_INFINITY);
  let seen: RolloutBody | undefined;
  for (;;) {
    const answer = await askWhileWaiting(
      async () => ({ rollout: await api.rollouts.get(id), nodes: await api.nodes.list() }),
      line,
      untilMs,
      session,
    );
    if (answer === undefined) return { exitCode: 6, rollout: seen };
    const { rollout, nodes } = answer;
    seen = rollout;
    const { alive, there } = findReach(nodes, nodes.generation);
    const reach = `nodes ${there} of ${alive}`;
    const { state, step, percent } = rollout;
    line.show(renderRolloutProgress(rollout, reach, nowMs()), `${state} ${step} ${percent} ${reach}`);
    if (hasEnded(rollout)) {
      line.end();
      terminal.stderr.write(renderEnd(rollout));
      const everywhere = await waitForNodes(nodes.generation, nodesWithinMs, session);
      return { exitCode: rollout.state === "done" ? everywhere : 1, rollout };
    }
    if (nowMs() >= untilMs) {
      line.end();
      const waited = renderSpan(timeoutMs ?? 0);
      terminal.stderr.write(`The rollout has not ended after ${waited}, and goes on: sluice policy rollout ${id}\n`);
      return { exitCode: 6, rollout };
    }
    await sleep(lookEveryMs);
  }
}

function renderEnd({ policy, state, shadow, from_version, to_version, reason }: RolloutBody): string {
  const why = reason === "" ? "" : `: ${printable(reason)}`;
  const name = printable(policy);
  if (state === "done" && shadow)
    return `Version ${to_version} of ${name} was compared, and is not in force: this was a shadow rollout${why}\n`;
  if (state === "done") return `Version ${to_version} of ${name} is in force for all subjects${why}\n`;
  const old = from_version === 0 ? `${name} is not in force` : `version ${from_version} of ${name} is in force again`;
  return `The rollout was ${state.replace("_", " ")}, and ${old}${why}\n`;
}
