import { fork } from "node:child_process";
import path from "node:path";
import type { Order, Reply } from "./node.ts";

/** A node in a separate process. */
export interface BenchNode {
  /** Rejects if it fails. One order at a time. */
  order<Kind extends Reply["kind"]>(order: Order, answeredBy: Kind): Promise<Extract<Reply, { kind: Kind }>>;
  stop(): void;
}

export async function startNode(): Promise<BenchNode> {
  const child = fork(path.join(import.meta.dirname, "node.ts"), [], {
    // Advanced serialization, so that typed arrays travel as binary.
    serialization: "advanced",
    execArgv: ["-C", "source"],
  });
  const nextReply = (): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const onExit = (code: number | null): void => reject(new Error(`a node exited with ${code}`));
      child.once("exit", onExit);
      child.once("message", (reply) => {
        child.off("exit", onExit);
        resolve(reply as Reply);
      });
    });
  await nextReply();
  return {
    async order(order, answeredBy) {
      const reply = nextReply();
      child.send(order);
      const answer = await reply;
      if (answer.kind === "failed") throw new Error(`a node failed: ${answer.message}`);
      if (answer.kind !== answeredBy) throw new Error(`a node answered with ${answer.kind} instead of ${answeredBy}`);
      return answer as Extract<Reply, { kind: typeof answeredBy }>;
    },
    stop: () => void child.kill(),
  };
}
