import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { flavors, startCluster, startServer } from "@sluice/test-servers";
import { algorithms } from "sluice/internal";
import { describe, expect, test } from "vitest";

const hammer = fileURLToPath(new URL("testing/hammer.ts", import.meta.url));

/**
 * Takes from the same counters in several processes at once, and returns what they were allowed together, by algorithm.
 */
async function hammerTogether(servers: string, processes: number, count: number): Promise<Record<string, number>> {
  const children = Array.from({ length: processes }, () =>
    spawn(process.execPath, ["-C", "source", hammer, servers, String(count)], { stdio: ["pipe", "pipe", "inherit"] }),
  );
  try {
    const outputs = children.map(({ stdout }) => createInterface({ input: stdout })[Symbol.asyncIterator]());
    await Promise.all(outputs.map((output) => output.next()));
    for (const { stdin } of children) stdin.write("go\n");
    const allowed: Record<string, number> = {};
    for (const algorithm of algorithms) {
      const lines = await Promise.all(outputs.map((output) => output.next()));
      allowed[algorithm] = lines.reduce((sum, { value }) => sum + Number(value), 0);
    }
    return allowed;
  } finally {
    for (const child of children) child.kill("SIGKILL");
  }
}

const exactly = Object.fromEntries(algorithms.map((algorithm) => [algorithm, 500]));

describe.each(flavors)("many processes that take from the same counters, on %s", (flavor) => {
  test("are allowed exactly what the limit allows, by every algorithm", async () => {
    const server = await startServer({ flavor });
    try {
      expect(await hammerTogether(server.url, 4, 400)).toEqual(exactly);
    } finally {
      await server.close();
    }
  }, 120_000);

  test("are allowed exactly that on a cluster too", async () => {
    const cluster = await startCluster({ flavor });
    try {
      const servers = `redis+cluster://${cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",")}`;
      expect(await hammerTogether(servers, 4, 400)).toEqual(exactly);
    } finally {
      await cluster.close();
    }
  }, 120_000);
});
