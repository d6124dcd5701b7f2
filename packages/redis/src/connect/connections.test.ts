import { inspect } from "node:util";
import { createClient } from "@redis/client";
import { createFaultyProxy, type Flavor, flavors, startServer, type TestServer } from "@sluice/test-servers";
import { Redis as Ioredis } from "ioredis";
import { Redis as Iovalkey } from "iovalkey";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connectIoredis } from "./ioredis-connection.ts";
import { connectLikeNodeRedis, connectNodeRedis } from "./node-redis-connection.ts";
import type { Address, Connect, RedisConnection } from "./redis-connection.ts";

/** Servers notice the end of a connection in their own time. */
const soon = { timeout: 30_000 };

interface Way {
  readonly name: string;
  /** For servers of this password, if they want one. */
  connect(password?: string): Connect;
}

// An application's clients: they never connect themselves, and give false addresses.
const ways: readonly Way[] = [
  { name: "node-redis", connect: (password) => connectNodeRedis({ password }) },
  {
    name: "a client of node-redis",
    connect: (password) =>
      connectLikeNodeRedis(
        createClient({ socket: { path: "/nowhere", tls: false }, ...(password === undefined ? {} : { password }) }),
      ),
  },
  {
    name: "a client of ioredis",
    connect: (password) =>
      connectIoredis(
        new Ioredis({ path: "/nowhere", lazyConnect: true, ...(password === undefined ? {} : { password }) }),
      ),
  },
  {
    name: "a client of iovalkey",
    connect: (password) =>
      connectIoredis(
        new Iovalkey({ path: "/nowhere", lazyConnect: true, ...(password === undefined ? {} : { password }) }),
      ),
  },
];

let opened: RedisConnection[] = [];
afterEach(() => {
  for (const connection of opened) connection.close();
  opened = [];
});

interface Heard {
  readonly connection: RedisConnection;
  readonly readies: () => number;
  readonly losses: readonly Error[];
}

function open(connect: Connect, address: Address): Heard {
  let readies = 0;
  const losses: Error[] = [];
  const connection = connect(address, {
    onReady: () => {
      readies += 1;
    },
    onLost: (error) => losses.push(error),
  });
  opened.push(connection);
  return { connection, readies: () => readies, losses };
}

async function openReady(connect: Connect, address: Address): Promise<Heard> {
  const heard = open(connect, address);
  await expect.poll(() => heard.readies(), { timeout: 30_000 }).toBe(1);
  return heard;
}

const tcp = ({ host, port }: { readonly host?: string; readonly port: number }): Address => ({
  kind: "tcp",
  host: host ?? "127.0.0.1",
  port,
});

async function connectionsTo(server: TestServer): Promise<number> {
  const list = String(await server.command("CLIENT", "LIST"));
  return list.split("\n").filter((line) => line.includes(" name=sluice ")).length;
}

async function countCalls(server: TestServer, command: string): Promise<number> {
  const stats = String(await server.command("INFO", "commandstats"));
  return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, "m").exec(stats)?.[1] ?? 0);
}

const cases = ways.flatMap((way) => flavors.map((flavor): [string, Flavor, Way] => [way.name, flavor, way]));

describe.each(cases)("a connection like %s to %s", (_, flavor, { connect }) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ flavor });
  });
  afterAll(() => server.close());
  beforeEach(() => expect.poll(() => connectionsTo(server), soon).toBe(0));

  it("is not ready before it is connected, rejects until then, and reports when it is", async () => {
    const { connection, readies } = open(connect(), tcp(server));
    expect(connection.ready).toBe(false);
    await expect(connection.send(["PING"])).rejects.toThrow(Error);
    await expect.poll(() => readies(), soon).toBe(1);
    expect(connection.ready).toBe(true);
    expect(await connection.send(["PING"])).toBe("PONG");
  });

  it("returns scripts' results as numbers and strings, and accepts texts and bytes", async () => {
    const { connection } = await openReady(connect(), tcp(server));
    const script =
      "return { 1, -2, 6755399441055744, '', 'text', ARGV[1], #ARGV[2], string.byte(ARGV[2], 1), { 3, 'x' } }";
    const bytes = Buffer.from([255, 0, 13, 10]);
    expect(await connection.send(["EVAL", script, "0", "ünï", bytes])).toEqual([
      ...[1, -2, 6755399441055744, "", "text", "ünï", 4, 255],
      [3, "x"],
    ]);
    expect(await connection.send(["GET", "nothing"])).toBeNull();
  });

  it("works over a Unix socket as well", async () => {
    const { connection } = await openReady(connect(), { kind: "unix", path: server.unixSocket });
    expect(await connection.send(["ECHO", "here"])).toBe("here");
  });

  it("rejects an error reply with a message that begins with its code, and keeps working", async () => {
    const { connection, losses } = await openReady(connect(), tcp(server));
    await expect(connection.send(["EVALSHA", "0".repeat(40), "0"])).rejects.toThrow(/^NOSCRIPT /);
    await server.command("RPUSH", "a list", "x");
    await expect(connection.send(["GET", "a list"])).rejects.toThrow(/^WRONGTYPE /);
    expect(await connection.send(["PING"])).toBe("PONG");
    expect(losses).toEqual([]);
  });

  it("keeps the command out of its errors", async () => {
    const { connection } = await openReady(connect(), tcp(server));
    const error: unknown = await connection.send(["GET", "a", "secret subject"]).catch((one: unknown) => one);
    expect(error).toBeInstanceOf(Error);
    expect(inspect(error, { depth: 9 })).not.toContain("secret subject");
  });

  it("closes at once, for good, and leaves no connection behind", async () => {
    const { connection, readies, losses } = await openReady(connect(), tcp(server));
    expect(await connectionsTo(server)).toBe(1);
    connection.close();
    await expect.poll(() => connectionsTo(server), soon).toBe(0);
    expect(connection.ready).toBe(false);
    await expect(connection.send(["PING"])).rejects.toThrow(Error);
    connection.renew();
    connection.close();
    expect(connection.ready).toBe(false);
    expect([readies(), losses]).toEqual([1, []]);
  });

  it("may be closed before it was ever made", async () => {
    const { connection, readies } = open(connect(), tcp(server));
    connection.close();
    await openReady(connect(), tcp(server));
    expect(readies()).toBe(0);
    await expect.poll(() => connectionsTo(server), soon).toBe(1);
  });

  it("charges once if the reply is lost, rejects, and reconnects automatically", async () => {
    const proxy = await createFaultyProxy(server);
    try {
      const { connection, readies, losses } = await openReady(connect(), tcp(proxy));
      const key = `once-${flavor}-${opened.length}-${proxy.port}`;
      proxy.dropRepliesOnce();
      await expect(connection.send(["INCR", key])).rejects.toThrow(Error);
      await expect.poll(() => readies(), { timeout: 30_000 }).toBe(2);
      expect(losses).toHaveLength(1);
      expect(await connection.send(["INCR", key])).toBe(2);
    } finally {
      await proxy.close();
    }
  });

  it("drops a connection that does not answer, with all that waits on it, and makes another", async () => {
    const proxy = await createFaultyProxy(server);
    try {
      const { connection, readies } = await openReady(connect(), tcp(proxy));
      proxy.blackhole();
      const lost = connection.send(["PING"]);
      await expect.poll(() => proxy.bytesSwallowed, soon).toBeGreaterThan(0);
      proxy.heal();
      connection.renew();
      await expect(lost).rejects.toThrow(Error);
      await expect.poll(() => readies(), { timeout: 30_000 }).toBe(2);
      expect(await connection.send(["PING"])).toBe("PONG");
    } finally {
      await proxy.close();
    }
  });

  it("sends nothing again that a server took to its grave, and is back when the server is", async () => {
    const own = await startServer({ flavor });
    try {
      const { connection, readies, losses } = await openReady(connect(), tcp(own));
      expect(await connection.send(["INCR", "n"])).toBe(1);
      own.pause();
      const lost = Array.from({ length: 20 }, () => connection.send(["INCR", "n"]));
      const settled = Promise.allSettled(lost);
      await own.kill();
      expect((await settled).filter(({ status }) => status === "fulfilled")).toEqual([]);
      expect(connection.ready).toBe(false);
      await expect(connection.send(["INCR", "n"])).rejects.toThrow(Error);
      await own.restart();
      await expect.poll(() => readies(), { timeout: 30_000 }).toBe(2);
      expect(losses.length).toBeGreaterThan(0);
      expect(await countCalls(own, "incr")).toBe(0);
      expect(await connection.send(["INCR", "n"])).toBe(1);
    } finally {
      await own.close();
    }
  });

  it("reports why it is refused, and never the password", async () => {
    const own = await startServer({ flavor, args: ["--requirepass", "right-secret"] });
    try {
      const { losses } = open(connect("wrong-secret"), tcp(own));
      await expect.poll(() => losses.length, { timeout: 30_000 }).toBeGreaterThan(0);
      expect(losses[0]!.message).toMatch(/^WRONGPASS /);
      expect(inspect(losses, { depth: 9, showHidden: true })).not.toContain("wrong-secret");
      const { connection } = await openReady(connect("right-secret"), tcp(own));
      expect(await connection.send(["PING"])).toBe("PONG");
    } finally {
      await own.close();
    }
  });
});
