import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { startServer, type TestServer } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const main = fileURLToPath(new URL("ending-app/main.ts", import.meta.url));
const nowhere = "redis://127.0.0.1:1";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ flavor: "valkey" });
});
afterAll(() => server.close());

/** What an app printed, and how it ended. One that does not end is killed, and has no exit code. */
async function run(...args: readonly string[]): Promise<{ readonly code: number | null; readonly printed: string }> {
  const child = spawn(process.execPath, ["-C", "source", main, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  let closing: NodeJS.Timeout | undefined;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
    // It has answered, and closes. Sockets and timers of a second or two may still end; a process that waits for more never ends.
    closing ??= setTimeout(() => child.kill("SIGKILL"), 20_000);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(closing);
  return { code, printed };
}

const ended = { code: 0, printed: "200\n" };

describe("an app that closes its server", () => {
  it.each(["express", "koa", "hono", "fastify", "nest", "fastify-rate-limit"])(
    "of %s ends, with counters in Redis",
    async (framework) => {
      expect(await run(framework, "redis", server.url)).toEqual(ended);
    },
  );

  it.each(["fastify", "nest"])("of %s ends, also while Redis is not there", async (framework) => {
    expect(await run(framework, "redis", nowhere)).toEqual(ended);
  });

  it("ends with connections like those of a client of ioredis", async () => {
    expect(await run("express", "ioredis", server.url)).toEqual(ended);
  });
});

describe("a script that waits for nothing but a check", () => {
  it("gets its answer before it ends, from a server that is there and from one that is not", async () => {
    expect(await run("script", "redis", server.url)).toEqual(ended);
    expect(await run("script", "redis", nowhere)).toEqual(ended);
  });
});
