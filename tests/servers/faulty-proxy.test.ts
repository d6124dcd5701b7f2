import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createFaultyProxy, type FaultyProxy, flavors, startServer, type TestServer } from "./src/index.ts";

/** A client that notes what becomes of its connection. */
interface Client {
  readonly socket: Socket;
  received: string;
  ending: "none" | "end" | "reset";
}

describe.each(flavors)("a faulty proxy before %s", (flavor) => {
  let server: TestServer;
  let proxy: FaultyProxy;
  let clients: Client[];

  beforeAll(async () => {
    server = await startServer({ flavor });
  });

  afterAll(() => server.close());

  beforeEach(async () => {
    clients = [];
    proxy = await createFaultyProxy(server);
    await server.command("FLUSHALL");
  });

  afterEach(async () => {
    for (const { socket } of clients) socket.destroy();
    await proxy.close();
  });

  async function open(): Promise<Client> {
    const socket = connect(proxy.port, "127.0.0.1");
    const client: Client = { socket, received: "", ending: "none" };
    clients.push(client);
    socket.on("data", (chunk) => {
      client.received += chunk;
    });
    socket.on("end", () => {
      client.ending = "end";
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNRESET" || error.code === "EPIPE") client.ending = "reset";
    });
    // A proxy that refuses may do so before the connection is established.
    await once(socket, "connect").catch(() => undefined);
    return client;
  }

  async function expectReply(client: Client, reply: string): Promise<void> {
    await expect.poll(() => client.received, { timeout: 30_000, interval: 5 }).toBe(reply);
  }

  async function expectReset(client: Client): Promise<void> {
    await expect.poll(() => client.ending, { timeout: 30_000, interval: 5 }).toBe("reset");
  }

  it("forwards both ways, and counts", async () => {
    const client = await open();
    client.socket.write("INCR counter\r\n");
    await expectReply(client, ":1\r\n");
    expect([proxy.connections, proxy.bytesToServer]).toEqual([1, 14]);
    expect(proxy.url).toBe(`redis://127.0.0.1:${proxy.port}`);
    client.socket.destroy();
    await expect.poll(() => proxy.connections, { interval: 5 }).toBe(0);
  });

  it("passes on that the server hangs up, after its last data", async () => {
    const client = await open();
    proxy.delayMs = 20;
    client.socket.write("INCR counter\r\nQUIT\r\n");
    await expect.poll(() => client.ending, { interval: 5 }).toBe("end");
    expect(client.received).toBe(":1\r\n+OK\r\n");
  });

  it("resets connections for which the server is not there", async () => {
    const lost = await createFaultyProxy({ host: "127.0.0.1", port: proxy.port });
    const { port } = lost;
    await proxy.close();
    const socket = connect(port, "127.0.0.1");
    const [error] = (await once(socket, "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNRESET");
    await lost.close();
  });

  it("delays replies and keeps their order", async () => {
    const client = await open();
    proxy.delayMs = 200;
    client.socket.write("INCR counter\r\n");
    await expect.poll(() => server.command("GET", "counter"), { interval: 5 }).toBe("1");
    proxy.delayMs = 1;
    client.socket.write("INCR counter\r\n");
    await expectReply(client, ":1\r\n:2\r\n");
  });

  it("delays replies for the given time, and releases them when it is healed", async () => {
    const client = await open();
    proxy.delayMs = 600_000;
    client.socket.write("INCR counter\r\n");
    await expect.poll(() => server.command("GET", "counter"), { interval: 5 }).toBe("1");
    proxy.delayMs = 300_000;
    client.socket.write("INCR counter\r\n");
    await expect.poll(() => server.command("GET", "counter"), { interval: 5 }).toBe("2");
    expect(client.received).toBe("");
    proxy.heal();
    await expectReply(client, ":1\r\n:2\r\n");
  });

  it("swallows both ways and closes nothing as a black hole, and connections that lost something stay lost", async () => {
    const [busy, idle] = [await open(), await open()];
    proxy.blackhole();
    busy.socket.write("INCR counter\r\n");
    const late = await open();
    late.socket.write("INCR counter\r\n");
    await expect.poll(() => proxy.bytesSwallowed, { interval: 5 }).toBe(28);
    expect(await server.command("GET", "counter")).toBeNull();
    expect([busy, idle, late].map(({ ending }) => ending)).toEqual(["none", "none", "none"]);
    proxy.heal();
    busy.socket.write("INCR counter\r\n");
    idle.socket.write("INCR counter\r\n");
    await expectReply(idle, ":1\r\n");
    expect([busy.received, proxy.connections]).toEqual(["", 3]);
  });

  it("swallows a reply that comes after the black hole opened", async () => {
    const client = await open();
    client.socket.write("BLPOP list 0\r\n");
    await expect.poll(() => server.command("INFO", "clients")).toContain("blocked_clients:1");
    proxy.blackhole();
    await server.command("RPUSH", "list", "value");
    await expect.poll(() => proxy.bytesSwallowed, { interval: 5 }).toBe("*2\r\n$4\r\nlist\r\n$5\r\nvalue\r\n".length);
    expect([client.received, client.ending]).toEqual(["", "none"]);
  });

  it("resets every connection, and takes new ones", async () => {
    const [one, other] = [await open(), await open()];
    await expect.poll(() => proxy.connections, { interval: 5 }).toBe(2);
    proxy.resetAll();
    await expectReset(one);
    await expectReset(other);
    const next = await open();
    next.socket.write("PING\r\n");
    await expectReply(next, "+PONG\r\n");
  });

  it("refuses new connections until it is healed, and keeps the others", async () => {
    const old = await open();
    old.socket.write("PING\r\n");
    await expectReply(old, "+PONG\r\n");
    proxy.refuse();
    await expectReset(await open());
    old.socket.write("PING\r\n");
    await expectReply(old, "+PONG\r\n+PONG\r\n");
    proxy.heal();
    const next = await open();
    next.socket.write("PING\r\n");
    await expectReply(next, "+PONG\r\n");
  });

  it("drops a reply after the server did the work", async () => {
    const client = await open();
    proxy.dropRepliesOnce();
    client.socket.write("INCR counter\r\n");
    await expectReset(client);
    expect(client.received).toBe("");
    const next = await open();
    next.socket.write("INCR counter\r\n");
    await expectReply(next, ":2\r\n");
  });

  it("drops the given number of replies", async () => {
    proxy.dropRepliesOnce(2);
    for (let count = 0; count < 2; count += 1) {
      const client = await open();
      client.socket.write("INCR counter\r\n");
      await expectReset(client);
    }
    const next = await open();
    next.socket.write("INCR counter\r\n");
    await expectReply(next, ":3\r\n");
  });

  it("closes with its connections", async () => {
    const client = await open();
    await expect.poll(() => proxy.connections, { interval: 5 }).toBe(1);
    await proxy.close();
    await expect.poll(() => client.ending, { interval: 5 }).not.toBe("none");
    expect(proxy.connections).toBe(0);
  });
});
