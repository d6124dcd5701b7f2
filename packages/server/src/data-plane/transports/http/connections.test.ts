import { connect } from "node:net";
import { type CounterStore, createLimiter, MemoryCounters } from "sluice";
import { describe, expect, it } from "vitest";
import { type StartedHttp, startHttp } from "./testing/start-http.ts";

/** A server whose checks are answered when the test says so. */
async function startSlow(): Promise<{ server: StartedHttp; asked: Promise<void>; answer: () => void }> {
  let answer = (): void => {};
  let tellAsked = (): void => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const asked = new Promise<void>((resolve) => {
    tellAsked = resolve;
  });
  const memory = new MemoryCounters();
  const counters: CounterStore = {
    local: false,
    take: async (limits, options) => {
      tellAsked();
      await answered;
      return memory.take(limits, options);
    },
    peek: async (limits) => memory.peek(limits),
    give: async (receipt) => memory.give(receipt),
    charge: async (limits) => memory.charge(limits),
    block: async (limits, forMs) => memory.block(limits, forMs),
    reset: async (limits) => memory.reset(limits),
    read: async (limit) => memory.read(limit),
    close() {},
  };
  return { server: await startHttp(createLimiter({ counters })), asked, answer };
}

const check = (url: string): Promise<Response> =>
  fetch(`${url}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"dimensions":{"user":"u"}}',
  });

describe("draining", () => {
  it("closes idle connections, silent ones and those with half a line, and cuts none off", async () => {
    const server = await startHttp(createLimiter());
    await fetch(`${server.url}/livez`);
    const closed = ["", "GET /li"].map(async (text) => {
      const socket = connect(server.port, "127.0.0.1").on("error", () => {});
      await new Promise<void>((resolve) => socket.write(text || "\r\n", () => resolve()));
      await new Promise((resolve) => socket.on("close", resolve).resume());
    });
    await expect.poll(() => fetch(`${server.url}/livez`).then(({ status }) => status)).toBe(200);
    expect(await server.close(10_000)).toBe(0);
    await Promise.all(closed);
  });

  it("lets what is in flight finish, and closes its connection after it", async () => {
    const { server, asked, answer } = await startSlow();
    const answering = check(server.url);
    await asked;
    const closing = server.close(10_000);
    answer();
    const response = await answering;
    expect(response.status).toBe(200);
    expect(response.headers.get("connection")).toBe("close");
    expect(await closing).toBe(0);
  });

  it("cuts off what does not finish in time, and counts it", async () => {
    const { server, asked, answer } = await startSlow();
    const answering = check(server.url).catch(() => "cut off");
    await asked;
    expect(await server.close(100)).toBe(1);
    expect(await answering).toBe("cut off");
    answer();
  });

  it("answers a request that has come over an open connection as it begins", async () => {
    const server = await startHttp(createLimiter());
    const socket = connect(server.port, "127.0.0.1").setEncoding("utf8");
    const request = "GET /livez HTTP/1.1\r\nhost: a\r\n\r\n";
    await new Promise((resolve) => socket.once("data", resolve).write(request));
    const answered = new Promise((resolve) => socket.once("data", resolve));
    socket.write(request);
    expect(await server.close(10_000)).toBe(0);
    expect(await answered).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*connection: close/);
  });
});

describe("a server that is about to stop", () => {
  it("asks clients with persistent connections to open the next one to another server", async () => {
    let accepting = true;
    const server = await startHttp(createLimiter(), { accepting: () => accepting });
    try {
      expect((await fetch(`${server.url}/livez`)).headers.get("connection")).toBe("keep-alive");
      accepting = false;
      expect((await fetch(`${server.url}/livez`)).headers.get("connection")).toBe("close");
      expect((await check(server.url)).headers.get("connection")).toBe("close");
    } finally {
      await server.close();
    }
  });
});
