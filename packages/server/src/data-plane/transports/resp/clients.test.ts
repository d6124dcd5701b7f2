import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { redis } from "@sluice/redis";
import { startServer } from "@sluice/test-servers";
import { Redis } from "ioredis";
import { createLimiter, SluiceError } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { startDaemon } from "../../../boot/daemon.ts";
import { parseSettings } from "../../../settings/parse-settings.ts";
import { createTestService, type ListeningTransport, listenForTest, silentLog } from "../../../testing/test-service.ts";
import type { Access } from "../../access/access.ts";
import { createRespServer } from "./server.ts";

const policies = { policies: [{ id: "per-user", limits: [{ by: ["user"], windows: ["3/h"] }] }] };

let server: ListeningTransport | undefined;
afterEach(async () => {
  await server?.close(0);
  server = undefined;
});

const withToken: Access = {
  identify(token) {
    if (token !== "open-sesame") throw new SluiceError("unauthenticated", "say who you are");
    return { name: "gateway", may: new Set(["check"]) };
  },
};

async function listen(access?: Access): Promise<ListeningTransport> {
  const service = createTestService(createLimiter({ policies }), access === undefined ? {} : { access });
  server = await listenForTest("resp", createRespServer(service));
  return server;
}

/** What redis-cli prints. */
function cli(args: readonly string[], input = ""): Promise<string> {
  return new Promise((resolve) => {
    const child = execFile("redis-cli", args, { env: { PATH: process.env.PATH } }, (_error, stdout, stderr) =>
      resolve(stdout + stderr),
    );
    child.stdin?.end(input);
  });
}

describe.each([2, 3] as const)("node-redis, RESP%i", (version) => {
  it("connects, throttles, checks, and closes", async () => {
    const { port } = await listen();
    const client = createClient({ socket: { host: "127.0.0.1", port }, RESP: version, name: "app" });
    await client.connect();
    expect(await client.ping()).toBe("PONG");
    expect(await client.clientGetName()).toBe("app");
    expect(await client.info("server")).toContain("redis_version:");
    expect(await client.sendCommand(["CL.THROTTLE", "user123", "15", "30", "60"])).toEqual([0, 16, 15, -1, 2]);
    const reply = await client.sendCommand(["SLUICE.CHECK", "per-user", "user=u", "COST", "2"]);
    if (version === 2) expect(reply).toEqual([1, 3, 1, -1, expect.any(Number), "within_limits", "per-user", "user"]);
    else
      expect({ ...(reply as object) }).toMatchObject({ allowed: true, limit: 3, remaining: 1, retry_after_ms: null });
    await expect(client.sendCommand(["GET", "a"])).rejects.toThrow("ERR unknown command 'GET'");
    await client.close();
  });

  it("sends many at once, and each gets its own answer", async () => {
    const { port } = await listen();
    const client = createClient({ socket: { host: "127.0.0.1", port }, RESP: version });
    await client.connect();
    const replies = await Promise.all(
      Array.from({ length: 2_000 }, (_, i) => client.sendCommand(["CL.THROTTLE", `k${i}`, `${i}`, "1", "1"])),
    );
    expect(replies).toEqual(Array.from({ length: 2_000 }, (_, i) => [0, i + 1, i, -1, 1]));
    client.destroy();
  });

  it("authenticates with a token as its password", async () => {
    const { port } = await listen(withToken);
    const client = createClient({ url: `redis://gateway:open-sesame@127.0.0.1:${port}`, RESP: version });
    await client.connect();
    expect(await client.ping()).toBe("PONG");
    client.destroy();
    const stranger = createClient({
      url: `redis://gateway:guess@127.0.0.1:${port}`,
      RESP: version,
      socket: { reconnectStrategy: false },
    });
    stranger.on("error", () => {});
    await expect(stranger.connect()).rejects.toThrow(/^WRONGPASS /);
  });
});

describe("ioredis", () => {
  it("connects, throttles, checks in a pipeline, and quits", async () => {
    const { port } = await listen(withToken);
    const client = new Redis({ host: "127.0.0.1", port, password: "open-sesame", retryStrategy: () => null });
    expect(await client.call("CL.THROTTLE", "user123", 15, 30, 60)).toEqual([0, 16, 15, -1, 2]);
    const pipeline = client.pipeline();
    for (let i = 0; i < 4; i++) pipeline.call("CL.THROTTLE", "k", 2, 1, 60);
    pipeline.call("SLUICE.CHECK", "nope");
    const replies = (await pipeline.exec())!;
    expect(replies.slice(0, 4).map(([, reply]) => (reply as number[])[0])).toEqual([0, 0, 0, 1]);
    expect(replies[4]![0]!.message).toBe('NOPOLICY no policy has the id "nope"');
    expect(await client.quit()).toBe("OK");
  });
});

describe("redis-cli", () => {
  it("throttles and checks, in both versions of the protocol", async () => {
    const port = String((await listen()).port);
    expect(await cli(["-p", port, "--no-raw", "CL.THROTTLE", "user123", "15", "30", "60"])).toBe(
      "1) (integer) 0\n2) (integer) 16\n3) (integer) 15\n4) (integer) -1\n5) (integer) 2\n",
    );
    expect(await cli(["-3", "-p", port, "--no-raw", "SLUICE.CHECK", "per-user", "user=u", "PREVIEW"])).toMatch(
      /^ 1# "?allowed"? => \(true\)\n 2# "?limit"? => \(integer\) 3\n/,
    );
    expect(await cli(["-p", port, "SLUICE.CHECK", "nope"])).toMatch(/^NOPOLICY no policy has the id "nope"/);
  });

  it("authenticates", async () => {
    const port = String((await listen(withToken)).port);
    expect(await cli(["-p", port, "PING"])).toMatch(/^NOAUTH /);
    expect(await cli(["-p", port, "--no-auth-warning", "-a", "open-sesame", "PING"])).toBe("PONG\n");
    expect(await cli(["-3", "-p", port, "--no-auth-warning", "--user", "gateway", "-a", "open-sesame", "PING"])).toBe(
      "PONG\n",
    );
    expect(await cli(["-p", port, "--no-auth-warning", "-a", "guess", "PING"])).toMatch(/WRONGPASS/);
  });

  it("reads commands from its input, and pipes them", async () => {
    const port = String((await listen()).port);
    expect(await cli(["-p", port], 'PING\nECHO "a b"\nCL.THROTTLE k 0 1 60 0\n')).toBe("PONG\na b\n0\n1\n1\n-1\n0\n");
    const commands = Array.from({ length: 5_000 }, (_, i) => `CL.THROTTLE k${i} 15 30 60\r\n`).join("");
    expect(await cli(["-p", port, "--pipe"], commands)).toContain("errors: 0, replies: 5000");
  });
});

describe("with counters on a server", () => {
  it("answers as with counters in memory, in order, thousands at once", async () => {
    const valkey = await startServer({ flavor: "valkey" });
    const limiter = createLimiter({ policies, counters: redis(valkey.url, { deadlineMs: 20_000 }) });
    server = await listenForTest("resp", createRespServer(createTestService(limiter)));
    const client = createClient({ socket: { host: "127.0.0.1", port: server.port }, RESP: 2 });
    try {
      await client.connect();
      const throttle = (...words: (string | number)[]): Promise<unknown> =>
        client.sendCommand(["CL.THROTTLE", ...words.map(String)]);
      // One a day: nothing comes back while this runs.
      const day = 86_400;
      expect(await throttle("k", 2, 1, day)).toEqual([0, 3, 2, -1, day]);
      expect(await throttle("k", 2, 1, day, 0)).toEqual([0, 3, 2, -1, expect.any(Number)]);
      expect(await throttle("k", 2, 1, day, 4)).toEqual([1, 3, 2, -1, expect.any(Number)]);
      expect(await throttle("k", 2, 1, day, 2)).toEqual([0, 3, 0, -1, expect.any(Number)]);
      expect(await throttle("k", 2, 1, day)).toEqual([1, 3, 0, expect.any(Number), expect.any(Number)]);
      const keys = Array.from({ length: 3_000 }, (_, i) => `k${i % 1_000}`);
      const replies = await Promise.all(keys.map((key, i) => throttle(key, 2 + (i % 1_000), 1, 60)));
      expect(replies.map((reply) => (reply as number[]).slice(0, 2))).toEqual(keys.map((_, i) => [0, 3 + (i % 1_000)]));
    } finally {
      client.destroy();
      await limiter.close();
      await valkey.close();
    }
  });
});

describe("a daemon", () => {
  it("listens for Redis clients on a port and a unix socket, if configured", async () => {
    const folder = await mkdtemp(join(tmpdir(), "sluice-resp-"));
    const respSocket = join(folder, "resp.sock");
    const reading = parseSettings({}, { httpPort: "0", grpcPort: "off", respPort: "0", respSocket });
    if (reading.kind === "problems") throw new Error("settings");
    const daemon = await startDaemon({ settings: reading.settings, log: silentLog });
    try {
      const [url = "", path = ""] = daemon.addresses.resp;
      expect(url).toMatch(/^redis:\/\/127\.0\.0\.1:\d+$/);
      expect(path).toBe(`unix:${respSocket}`);
      expect(await cli(["-u", url, "CL.THROTTLE", "k", "0", "1", "60"])).toBe("0\n1\n0\n-1\n60\n");
      expect(await cli(["-s", respSocket, "CL.THROTTLE", "k", "0", "1", "60", "0"])).toMatch(/^0\n1\n0\n-1\n\d+\n$/);
    } finally {
      await daemon.close();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
