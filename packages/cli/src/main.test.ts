import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "@sluice/test-servers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const main = fileURLToPath(new URL("main.ts", import.meta.url));
const example = fileURLToPath(new URL("../../../config/policies.yaml", import.meta.url));

interface Running {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  readonly output: { out: string; err: string };
}

let folder: string;
let running: Running[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-main-"));
  running = [];
});

afterEach(async () => {
  for (const { child, exited } of running) {
    child.kill("SIGKILL");
    await exited;
  }
  await rm(folder, { recursive: true, force: true });
});

function sluice(...args: string[]): Running {
  return sluiceWith({}, ...args);
}

function sluiceWith(env: Record<string, string>, ...args: string[]): Running {
  const child = spawn(process.execPath, ["-C", "source", main, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH, SLUICE_HTTP_PORT: "0", SLUICE_GRPC_PORT: "off", ...env },
  });
  const output = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output.err += text;
  });
  const started = { child, output, exited: new Promise<number | null>((resolve) => child.once("close", resolve)) };
  running.push(started);
  return started;
}

async function readUrl({ output }: Running): Promise<string> {
  await expect.poll(() => output.out, { timeout: 30_000, interval: 10 }).toMatch(/listens on http:\S+\n[\s\S]*-d '/);
  return /listens on (\S+)/.exec(output.out)![1]!;
}

async function ask(url: string, body: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  return (await response.json()) as Record<string, unknown>;
}

const allowing = (limit: number): string =>
  `policies: [{ id: p, limits: [{ by: [user], windows: [${limit}/h] }], on_failure: open }]\n`;

describe("the sluice process", () => {
  it("serves the example, and its greeting's curl is answered by it", async () => {
    const server = sluice("serve", "--config", example);
    const url = await readUrl(server);
    const [, asked, body] = /curl -i (\S+) [\s\S]*-d '(.*)'/.exec(server.output.out) ?? [];
    expect(asked).toBe(`${url}/v1/check`);
    expect(await ask(url, body!)).toMatchObject({ allowed: true, policy: "login", remaining: 4 });
  });

  it("reloads on SIGHUP, finishes what is in flight on SIGTERM, and exits 0", async () => {
    const file = join(folder, "policies.yaml");
    await writeFile(file, allowing(5));
    const server = sluice("serve", "--config", file);
    const url = await readUrl(server);
    const limit = async (): Promise<unknown> => (await ask(url, '{"dimensions":{"user":"u"},"preview":true}')).limit;
    expect(await limit()).toBe(5);
    await writeFile(join(folder, ".next"), allowing(7));
    await rename(join(folder, ".next"), file);
    server.child.kill("SIGHUP");
    await expect.poll(limit, { timeout: 30_000, interval: 10 }).toBe(7);

    const body = '{"dimensions":{"user":"u"}}';
    const inFlight = request(`${url}/v1/check`, {
      method: "POST",
      headers: { "content-type": "application/json", "content-length": body.length, expect: "100-continue" },
    });
    const status = new Promise<number | undefined>((resolve, reject) => {
      inFlight.once("response", (response) => resolve(response.resume().statusCode)).once("error", reject);
    });
    await new Promise((resolve) => inFlight.once("continue", resolve).flushHeaders());
    server.child.kill("SIGTERM");
    const refused = (): Promise<boolean> =>
      fetch(`${url}/livez`).then(
        () => false,
        () => true,
      );
    await expect.poll(refused, { timeout: 30_000, interval: 10 }).toBe(true);
    inFlight.end(body);
    expect(await status).toBe(200);
    expect(await server.exited).toBe(0);
    expect(server.output.err).toMatch(/ info +policies reloaded .*generation=2/);
    expect(server.output.err).toMatch(/ info +stopped signal=SIGTERM/);
  });

  it("serves on counters in Redis, tells where they are and never the password, and ends in order", async () => {
    const redis = await startServer({ flavor: "valkey" });
    try {
      await redis.command("CONFIG", "SET", "requirepass", "hunter2");
      const env = { SLUICE_REDIS_URL: `redis://:hunter2@127.0.0.1:${redis.port}`, SLUICE_DEADLINE: "5s" };
      const server = sluiceWith(env, "serve", "--config", example, "--log-level", "debug");
      const url = await readUrl(server);
      expect(server.output.out).toContain(`  counters   ${redis.url}\n`);
      const ready = async (): Promise<number> => (await fetch(`${url}/readyz?strict`)).status;
      await expect.poll(ready, { timeout: 30_000, interval: 10 }).toBe(200);
      expect(await ask(url, '{"dimensions":{"user":"u1"}}')).toMatchObject({ allowed: true });
      server.child.kill("SIGTERM");
      expect(await server.exited).toBe(0);
      expect(server.output.err).toMatch(/ info +connected to a counter server/);
      expect(server.output.err).toMatch(/ info +stopped signal=SIGTERM/);
      expect(server.output.out + server.output.err).not.toContain("hunter2");
    } finally {
      await redis.close();
    }
  });

  it("writes nothing but JSON to stdout where that is asked for", async () => {
    const server = sluice("serve", "--log-format", "json");
    await expect.poll(() => server.output.out, { timeout: 30_000, interval: 10 }).toContain('"message":"listening"');
    server.child.kill("SIGINT");
    expect(await server.exited).toBe(0);
    const lines = server.output.out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { message: string });
    expect(lines.map((one) => one.message)).toEqual(["listening", "stopped"]);
    expect(server.output.err).toBe("");
  });

  it("finishes a change whose output is not read", async () => {
    const server = sluiceWith({ SLUICE_ADMIN_PORT: "0" }, "serve", "--store", `sqlite:${join(folder, "store.db")}`);
    await readUrl(server);
    const admin = /control +(http:\/\/[^/]+)/.exec(server.output.out)![1]!;
    const file = join(folder, "policies.yaml");
    await writeFile(file, allowing(5));
    const asked = ["--admin", admin, "--token-file", join(folder, "store.db-admin-token")];
    const applied = sluice("policy", "apply", file, "--yes", ...asked);
    applied.child.stdout!.destroy();
    expect(await applied.exited, applied.output.err).toBe(0);
    const listed = sluice("policy", "list", "--json", ...asked);
    expect(await listed.exited).toBe(0);
    expect((JSON.parse(listed.output.out) as { policies: unknown[] }).policies).toMatchObject([{ id: "p" }]);
  });

  it("exits 1 for a denial and 2 for an error", async () => {
    const file = join(folder, "policies.yaml");
    await writeFile(file, allowing(1));
    const denied = sluice("check", "user=u1", "--cost", "2", "--config", file);
    const failed = sluice("check", "user=u1", "--config", join(folder, "nowhere.yaml"));
    expect(await denied.exited).toBe(1);
    expect(denied.output.out).toContain("DENIED");
    expect(await failed.exited).toBe(2);
    expect(failed.output.err).toContain("does not exist");
  });
});
