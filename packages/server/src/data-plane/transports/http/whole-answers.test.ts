import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { type CounterStore, createLimiter, MemoryCounters } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { HeldBytes } from "../held-bytes.ts";
import { Turns } from "../turns.ts";
import { Connection } from "./connection.ts";
import { type StartedHttp, startHttp } from "./testing/start-http.ts";

let server: StartedHttp | undefined;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.close();
  server = undefined;
});

const policies = {
  policies: [{ id: "p", limits: [{ by: ["user"], algorithm: "fixed_window", windows: ["1/d"] }] }],
};

/** A client on one connection, which reads one answer after the other. */
function open(): Socket {
  const socket = connect({ port: server!.port, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => {});
  sockets.push(socket);
  return socket.setNoDelay().setEncoding("latin1");
}

/** The next answer, all of it. */
async function nextAnswer(socket: Socket): Promise<string> {
  let text = "";
  for (;;) {
    text += (await once(socket, "data"))[0];
    const [head = "", body] = text.split("\r\n\r\n");
    if (body?.length === Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0)) return text;
  }
}

async function ask(socket: Socket, request: string): Promise<string> {
  const answer = nextAnswer(socket);
  socket.write(request);
  return await answer;
}

const post = (body: string, headers = "content-type: application/json\r\n", path = "/v1/check"): string =>
  `POST ${path} HTTP/1.1\r\nhost: a\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const createCheck = (user: string): string => post(`{"dimensions":{"user":"${user}","endpoint":"/all"}}`);

/** Without the time, on which the length of an answer depends. */
const lasting = (answer: string): string =>
  answer
    .replace(/Date: [^\r]+|content-length: \d+/g, "")
    .replace(/(Retry-After|X-RateLimit-Reset): \d+|;t=\d+/g, "")
    .replaceAll(/"(retry_after_ms|reset_after_ms|reset_at_ms|more_after_ms)":\d+/g, "");

/** Counters whose takes are answered when the test says so. */
function slowCounters(): { counters: CounterStore; takes: (() => void)[] } {
  const memory = new MemoryCounters();
  const takes: (() => void)[] = [];
  const counters: CounterStore = {
    local: false,
    take: async (limits, options) => {
      await new Promise<void>((resolve) => takes.push(resolve));
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
  return { counters, takes };
}

describe("a request that arrives whole, after another on its connection", () => {
  // The first request of a connection takes Node's way.
  it.each([
    ["an allowance", [createCheck("u1"), createCheck("u2")]],
    ["a denial", [createCheck("u1"), createCheck("u1"), createCheck("u1")]],
    ["no limit", [post("{}"), post("{}")]],
    ["a batch", [1, 2].map(() => post('{"checks":[{},{"dimensions":{"user":"u5"}},{"costs":1}]}'))],
    ["no JSON", [post("{"), post("{")]],
    ["no UTF-8", [post("\xff"), post("\xff")]],
    ["an unknown field", [post('{"costs":1}'), post('{"costs":1}')]],
    ["another type", [post("a", "content-type: text/plain\r\n"), post("a", "content-type: text/plain\r\n")]],
    ["compressed", [1, 2].map(() => post("{}", "content-type: application/json\r\ncontent-encoding: gzip\r\n"))],
    ["no body", [post(""), post("")]],
    ["neither body nor type", [post("", ""), post("", "")]],
    ["Envoy's JSON", [post('{"domain":"d"}', "", "/json"), post('{"domain":"d"}', "", "/json")]],
  ])("is answered with the bytes that Node would write: %s", async (_, requests) => {
    const whole = await answersTo(requests);
    // A header that only Node's way reads, and that changes nothing.
    const byNode = await answersTo(requests.map((one) => one.replace("host: a", "host: a\r\nte: trailers")));
    expect(whole).toEqual(byNode);
  });

  async function answersTo(requests: readonly string[]): Promise<readonly string[]> {
    server = await startHttp(createLimiter({ policies }));
    const socket = open();
    await ask(socket, createCheck("first"));
    const answers: string[] = [];
    for (const request of requests) answers.push(lasting(await ask(socket, request)));
    socket.destroy();
    await server.close();
    server = undefined;
    return answers;
  }

  it("waits for the answer before it, and is then answered in order with what was sent ahead", async () => {
    const { counters, takes } = slowCounters();
    server = await startHttp(createLimiter({ policies, counters }));
    const socket = open();
    const first = ask(socket, createCheck("a"));
    await expect.poll(() => takes.length).toBe(1);
    takes.shift()!();
    await first;
    let heard = "";
    socket.on("data", (text) => {
      heard += text;
    });
    socket.write(createCheck("b"));
    await expect.poll(() => takes.length).toBe(1);
    for (const user of ["c", "d"]) socket.write(createCheck(user));
    socket.write("GET /livez HTTP/1.1\r\nhost: a\r\n\r\n");
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([takes.length, heard]).toEqual([1, ""]);
    for (let left = 3; left > 0; left--) {
      await expect.poll(() => takes.length).toBe(1);
      takes.shift()!();
    }
    await expect.poll(() => heard.match(/HTTP\/1\.1 200/g)?.length).toBe(4);
    expect(heard.lastIndexOf('"live"')).toBeGreaterThan(heard.lastIndexOf('"allowed"'));
  });

  it("is answered even if its client stops writing meanwhile, and the connection is closed", async () => {
    const { counters, takes } = slowCounters();
    server = await startHttp(createLimiter({ policies, counters }));
    const socket = open();
    const first = ask(socket, createCheck("a"));
    await expect.poll(() => takes.length).toBe(1);
    takes.shift()!();
    await first;
    const answer = nextAnswer(socket);
    socket.end(createCheck("b"));
    await expect.poll(() => takes.length).toBe(1);
    // The end of the stream has been seen by then.
    await fetch(`${server.url}/livez`).then((response) => response.text());
    takes.shift()!();
    expect(await answer).toContain('"allowed":true');
    await once(socket, "end");
  });

  it("costs nothing but itself if its client is gone before the answer", async () => {
    const { counters, takes } = slowCounters();
    server = await startHttp(createLimiter({ policies, counters }));
    const socket = open();
    const first = ask(socket, createCheck("a"));
    await expect.poll(() => takes.length).toBe(1);
    takes.shift()!();
    await first;
    socket.write(createCheck("b"));
    await expect.poll(() => takes.length).toBe(1);
    socket.resetAndDestroy();
    await fetch(`${server.url}/livez`).then((response) => response.text());
    takes.shift()!();
    expect((await fetch(`${server.url}/livez`)).status).toBe(200);
  });

  it("is the last one on a server that is about to stop", async () => {
    let accepting = true;
    server = await startHttp(createLimiter({ policies }), { accepting: () => accepting });
    const socket = open();
    await ask(socket, createCheck("a"));
    expect(await ask(socket, createCheck("b"))).toContain("Connection: keep-alive");
    accepting = false;
    const ended = once(socket, "end");
    expect(await ask(socket, createCheck("c"))).toContain("connection: close");
    await ended;
  });

  it("is what Node's parser would read: never the rest of a request that began before", async () => {
    server = await startHttp(createLimiter({ policies }));
    const begun = "POST /v1/reset HTTP/1.1\r\nhost: a\r\nx-first: ";
    const cases: readonly [ahead: string, answers: readonly RegExp[]][] = [
      [createCheck("a") + begun, [/"allowed":true/, /403 Forbidden/]],
      [begun, [/403 Forbidden/]],
      [`${createCheck("b")}\r\n`, [/"allowed":true/, /"allowed":true/]],
      [post("[]").slice(0, -1), [/the body is not JSON/, /400 Bad Request/]],
    ];
    for (const [ahead, expected] of cases) {
      const socket = open();
      await ask(socket, createCheck("first"));
      let heard = "";
      socket.on("data", (text) => {
        heard += text;
      });
      socket.write(ahead);
      // It has been read by then.
      await fetch(`${server.url}/livez`).then((response) => response.text());
      socket.write(createCheck("c"));
      await expect.poll(() => heard.match(/HTTP\/1\.1 \d/g)?.length).toBe(expected.length);
      for (const [i, answer] of heard.split(/(?=HTTP\/1\.1 \d)/).entries()) expect(answer).toMatch(expected[i]!);
    }
  });
});

/** A connection on a stream, which counts what its server was asked in which way. */
function follow(): { send: (text: string) => void; ways: string[] } {
  const ways: string[] = [];
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  const complete = { complete: true, headers: {} } as never;
  socket.on("data", () => {
    ways.push("node");
    const response = new Duplex({ read() {} });
    connection.take(complete, response as never);
    response.emit("close");
  });
  const connection: Connection = new Connection(socket as Socket, {
    protocol: "http",
    answer() {},
    answerWhole: (piece, _socket, writer) => {
      if (piece.includes("unusual")) return false;
      ways.push("whole");
      writer.write({ status: 200, body: "{}" }, false);
      return true;
    },
    turns: new Turns(),
    held: new HeldBytes(),
    unreadMs: 30_000,
    keptFor: "timeout=72",
    maxRequests: 1_000_000,
    onAnswered() {},
  });
  return { send: (text) => socket.push(text), ways };
}

describe("the way of a request", () => {
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it("is Node's for the first of a connection, and for what is not simple or does not fit into a piece", async () => {
    const { send, ways } = follow();
    const unusual = post("unusual");
    const large = post("x".repeat(2_000));
    for (const request of [post("1"), post("2"), unusual, post("3"), large, post("4"), post("5")]) {
      send(request);
      await settle();
      await settle();
    }
    expect(ways).toEqual(["node", "whole", "node", "whole", "node", "node", "node", "whole", "whole"]);
  });

  it("is Node's from the first request whose end is not known", async () => {
    const { send, ways } = follow();
    const chunked = "POST /v1/check HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nunusual";
    for (const request of [post("1"), chunked, post("2"), post("3")]) {
      send(request);
      await settle();
      await settle();
    }
    expect(ways).toEqual(["node", "node", "node", "node"]);
  });
});
