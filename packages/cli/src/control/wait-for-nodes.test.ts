import type { NodesBody, RolloutBody } from "@sluice/protocol/admin";
import { describe, expect, it } from "vitest";
import { CommandError } from "../terminal/terminal.ts";
import { waitForNodes } from "./wait-for-nodes.ts";
import { waitForRollout } from "./wait-for-rollout.ts";

const node = {
  ...{ id: "a", name: "a", version: "", started_ms: 0, seen_ms: 0, applied_ms: 0 },
  ...{ current: true, alive: true, details: {} },
};
const at = (...generations: readonly number[]): NodesBody => ({
  generation: 7,
  nodes: generations.map((generation) => ({ ...node, generation })),
});
const away = new CommandError("no answer", 5);
const refused = new CommandError("the token is not accepted", 3);

/** A control plane that answers so, one after the other, and the last for good. Every sleep takes its time. */
function session(...answers: readonly (NodesBody | RolloutBody | CommandError)[]) {
  let asked = 0;
  let nowMs = 0;
  async function answer<T>(): Promise<T> {
    const next = answers[Math.min(asked++, answers.length - 1)];
    if (next instanceof CommandError) throw next;
    return next as T;
  }
  const made = {
    told: "",
    api: { nodes: { list: () => answer<NodesBody>() }, rollouts: { get: () => answer<RolloutBody>() } },
    terminal: {
      stdout: { write: () => {} },
      stderr: {
        write(text: string): void {
          made.told += text;
        },
      },
    },
    nowMs: () => nowMs,
    async sleep(ms: number): Promise<void> {
      nowMs += ms;
    },
  };
  return made;
}

describe("waiting for nodes", () => {
  it("ends when all that are alive are there", async () => {
    expect(await waitForNodes(7, 5_000, session(at(6, 7), at(6, 7), at(7, 7)))).toBe(0);
  });

  it("goes on while the control plane is unavailable, and forgets a node that is gone", async () => {
    const gone = {
      generation: 7,
      nodes: [
        { ...node, generation: 7 },
        { ...node, generation: 3, alive: false },
      ],
    };
    expect(await waitForNodes(7, 60_000, session(at(7, 3), away, away, gone))).toBe(0);
  });

  it.each([
    ["does not come back", away],
    ["no longer lets us ask", refused],
  ])("tells that it is done where the control plane %s", async (_, error) => {
    const waiting = session(at(6), error);
    expect(await waitForNodes(7, 5_000, waiting)).toBe(6);
    expect(waiting.told).toContain(`What was done stays done, but cannot be waited for: ${error.message}`);
  });
});

describe("waiting for a rollout", () => {
  it("has what was seen last where the control plane does not come back", async () => {
    const rollout = { id: "r", policy: "p\u001b[2J", state: "running", steps: [], step: 0, percent: 10, reason: "" };
    const waiting = session(rollout as unknown as RolloutBody, at(7), away);
    expect(await waitForRollout("r", 5_000, waiting)).toEqual({ exitCode: 6, rollout });
    expect(waiting.told).toContain("cannot be waited for");
    expect(waiting.told).not.toContain("\u001b");
  });
});
