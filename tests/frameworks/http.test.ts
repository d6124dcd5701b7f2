import { EventEmitter, once } from "node:events";
import { createServer, type IncomingMessage, ServerResponse } from "node:http";
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  constants,
  createServer as createHttp2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type IncomingHttpHeaders,
} from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { AskedLimiter } from "@sluice/middleware";
import { findTicket, type Limits, type RateLimitOptions, rateLimit, type Sent } from "@sluice/middleware/http";
import { type Limiter, limit } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import type { RunningApp } from "./framework-under-test.ts";
import { ask } from "./http-exchange.ts";
import { leaveBeforeAnswer, leaveDuringAnswer } from "./leave-early.ts";
import { listenOnLoopback } from "./listen-on-loopback.ts";
import { describeMiddleware } from "./middleware-contract.ts";

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = decodeURIComponent(new URL(request.url ?? "/", "http://a").pathname);
  if (path === "/hello") response.end("hello");
  else if (path.startsWith("/items/")) response.end(path.slice("/items/".length));
  else if (path === "/broken") throw new Error("broken");
  else if (path === "/echo") request.pipe(response);
  else if (path === "/stream") {
    for (let i = 0; i < 3; i++) {
      response.write("x".repeat(1000));
      await new Promise((resolve) => setImmediate(resolve));
    }
    response.end();
  } else if (path === "/charged") {
    const ticket = findTicket(request)!;
    await ticket.charge(5);
    response.end(String(ticket.decision.remaining));
  } else {
    response.statusCode = 404;
    response.end();
  }
}

async function start(limits: Limits, options?: RateLimitOptions<IncomingMessage>): Promise<RunningApp> {
  const admit = rateLimit(limits, options);
  const server = createServer(async (request, response) => {
    try {
      if (await admit(request, response)) await handle(request, response);
    } catch {
      response.statusCode = 500;
      response.end();
    }
  });
  return listenOnLoopback(server);
}

describeMiddleware({
  name: `node:http ${process.version}`,
  knowsRoutes: false,
  header: (name) => (request: IncomingMessage) => request.headers[name] as string | undefined,
  start,
});

const running: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) await one.close();
});

async function serve(
  handler: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<{ readonly url: string }> {
  const app = await listenOnLoopback(createServer((request, response) => void handler(request, response)));
  running.push(app);
  return app;
}

const soon = { timeout: 30_000, interval: 20 };

/** A limiter that looks as if its counters were not in this process. */
function asRemote(limiter: Limiter, until?: Promise<unknown>): AskedLimiter {
  return {
    check: async (request) => {
      await until;
      return limiter.check(request);
    },
    charge: (request) => limiter.charge(request),
    give: (receipt) => limiter.give(receipt),
  };
}

describe("node:http: on its own", () => {
  it("answers synchronously if counters are in this process, and later if not", async () => {
    const { limiter } = limit("9/h").by("ip");
    const answers: unknown[] = [];
    for (const limits of [limiter, asRemote(limiter)]) {
      const admit = rateLimit(limits);
      const { url } = await serve(async (request, response) => {
        const admitted = admit(request, response);
        answers.push(admitted);
        await admitted;
        response.end();
      });
      expect((await ask(url)).headers["x-ratelimit-limit"]).toBe("9");
    }
    expect(answers).toEqual([true, expect.any(Promise)]);
  });

  it("charges a client that leaves in the middle of an answer once, for what was sent by then", async () => {
    const charged: Sent[] = [];
    const admit = rateLimit("9/h", { charge: (_request, sent) => void charged.push(sent) });
    const { url } = await serve(async (request, response) => {
      if (!(await admit(request, response))) return;
      response.write("x".repeat(1000));
      if (request.url === "/leave") await once(response, "close");
      // It is not sent to a client that has left.
      response.write("x".repeat(1000));
      response.end("x".repeat(1000));
    });
    await leaveDuringAnswer(`${url}/leave`);
    await expect.poll(() => charged, soon).toEqual([{ status: 200, bytes: 1000 }]);
    expect((await ask(`${url}/stay`)).text).toHaveLength(3000);
    await expect
      .poll(() => charged, soon)
      .toEqual([
        { status: 200, bytes: 1000 },
        { status: 200, bytes: 3000 },
      ]);
  });

  it("does not take it for success when a client leaves before there is an answer", async () => {
    const seen: Sent[] = [];
    const giveBack = (_request: unknown, sent: Sent): boolean => {
      seen.push(sent);
      return sent.status < 400;
    };
    const { limiter } = limit("9/h").by("ip");
    for (const leavesWhile of ["the handler works", "the limiter is asked"]) {
      const events = new EventEmitter();
      const left = once(events, "left");
      const limits = leavesWhile === "the handler works" ? limiter : asRemote(limiter, left);
      const admit = rateLimit(limits, { giveBack });
      const { url } = await serve(async (request, response) => {
        response.once("close", () => events.emit("left"));
        events.emit("arrived");
        if (!(await admit(request, response))) return;
        await left;
        response.end("too late");
      });
      await leaveBeforeAnswer(url, once(events, "arrived"));
    }
    await expect
      .poll(() => seen, soon)
      .toEqual([
        { status: 499, bytes: 0 },
        { status: 499, bytes: 0 },
      ]);
    expect((await limiter.peek({ dimensions: { ip: "127.0.0.1" } })).remaining).toBe(7);
  });

  it("counts a client that leaves while the app decides whether to skip by the address it had", async () => {
    const { limiter } = limit("9/h").by("ip");
    const events = new EventEmitter();
    const left = once(events, "left");
    const skip = (): Promise<boolean> => left.then(() => false);
    const admit = rateLimit(limiter, { skip });
    const { url } = await serve(async (request, response) => {
      response.once("close", () => events.emit("left"));
      const admitted = admit(request, response);
      events.emit("arrived");
      await admitted;
      events.emit("decided");
    });
    const decided = once(events, "decided");
    await leaveBeforeAnswer(url, once(events, "arrived"));
    await decided;
    expect((await limiter.peek({ dimensions: { ip: "127.0.0.1" } })).remaining).toBe(8);
  });

  it("waits for a limiter that answers with promises of another kind", async () => {
    const { limiter } = limit("1/h").by("ip");
    // Like one of another realm or a library: what it chains to is not a native promise either.
    const foreign = <Value>(promise: Promise<Value>): Promise<Value> =>
      // biome-ignore lint/suspicious/noThenProperty: that is what it is about.
      ({ then: (go, fail) => foreign(promise.then(go, fail)) }) as Promise<Value>;
    const check: AskedLimiter["check"] = (request) => foreign(limiter.check(request));
    const admit = rateLimit({ ...asRemote(limiter), check });
    const { url } = await serve(async (request, response) => {
      if (await admit(request, response)) response.end("hello");
    });
    expect((await ask(url)).text).toBe("hello");
    expect((await ask(url)).status).toBe(429);
  });

  it("charges an answer that could not be given back", async () => {
    const { limiter } = limit("9/h").by("ip");
    const errors: unknown[] = [];
    const broken = new Error("broken");
    const giveBack = (): never => {
      throw broken;
    };
    const admit = rateLimit(limiter, { giveBack, charge: () => 5, onError: (error) => errors.push(error) });
    const { url } = await serve(async (request, response) => {
      if (await admit(request, response)) response.end("hello");
    });
    await ask(url);
    const left = async (): Promise<unknown> => (await limiter.peek({ dimensions: { ip: "127.0.0.1" } })).remaining;
    await expect.poll(left, soon).toBe(3);
    expect(errors).toEqual([broken]);
  });

  it("survives an onError that throws, before and after an answer", async () => {
    const { limiter } = limit("9/h").by("ip");
    let failed = 0;
    const onError = (): never => {
      failed += 1;
      throw new Error("on top of it");
    };
    const breaks = { ...asRemote(limiter), check: () => Promise.reject(new Error("broken")) };
    for (const admit of [rateLimit(breaks, { onError }), rateLimit("9/h", { onError, charge: () => -1 })]) {
      const { url } = await serve(async (request, response) => {
        if (await admit(request, response)) response.end("hello");
      });
      expect((await ask(url)).text).toBe("hello");
    }
    await expect.poll(() => failed, soon).toBe(2);
  });

  it("refuses an upgrade with an answer, if it is given a response", async () => {
    const admit = rateLimit("1/h");
    const server = createServer();
    server.on("upgrade", (request, socket: Socket) => {
      const response = new ServerResponse(request);
      response.assignSocket(socket);
      if (!admit(request, response)) return void response.once("finish", () => socket.end());
      response.detachSocket(socket);
      socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: talk\r\n\r\n");
    });
    const app = await listenOnLoopback(server);
    running.push(app);
    const upgrade = async (): Promise<string> => {
      const socket = connect(Number(new URL(app.url).port), "127.0.0.1");
      socket.end("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: talk\r\n\r\n");
      return (await text(socket)).split("\r\n", 1)[0]!;
    };
    expect(await upgrade()).toBe("HTTP/1.1 101 Switching Protocols");
    expect(await upgrade()).toBe("HTTP/1.1 429 Too Many Requests");
  });
});

describe("node:http2: by its compatibility API", () => {
  async function connectTo(
    handler: (request: Http2ServerRequest, response: Http2ServerResponse) => void,
  ): Promise<ClientHttp2Session> {
    const server = createHttp2Server(handler);
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    running.push({
      close: async () => {
        session.destroy();
        await new Promise((resolve) => server.close(resolve));
      },
    });
    return session;
  }

  it("lets in, charges and refuses as over HTTP/1", async () => {
    const charged: Sent[] = [];
    const admit = rateLimit<Http2ServerRequest>("2/h", { charge: (_request, sent) => void charged.push(sent) });
    const session = await connectTo((request, response) => {
      if (!admit(request, response)) return;
      response.write("x".repeat(1000));
      response.end("x".repeat(1000));
    });
    const get = async (method = "GET"): Promise<readonly [IncomingHttpHeaders, string]> => {
      const stream = session.request({ ":path": "/hello", ":method": method });
      const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders];
      return [headers, await text(stream)];
    };
    const [headers, body] = await get();
    expect(headers).toMatchObject({ ":status": 200, "x-ratelimit-limit": "2", "x-ratelimit-remaining": "1" });
    expect(body).toHaveLength(2000);
    await expect.poll(() => charged, soon).toEqual([{ status: 200, bytes: 2000 }]);
    await get();
    const [refused, problem] = await get();
    expect(refused).toMatchObject({ ":status": 429, "content-type": "application/problem+json" });
    expect(JSON.parse(problem)).toMatchObject({ reason: "over_limit" });
    expect(await get("HEAD")).toMatchObject([{ ":status": 429 }, ""]);
  });

  it("does not take it for success when a client leaves while the limiter is asked", async () => {
    const charged: Sent[] = [];
    const events = new EventEmitter();
    const limits = asRemote(limit("9/h").by("ip").limiter, once(events, "left"));
    const admit = rateLimit<Http2ServerRequest>(limits, { charge: (_request, sent) => void charged.push(sent) });
    const session = await connectTo((request, response) => {
      response.once("close", () => events.emit("left"));
      events.emit("arrived");
      void admit(request, response);
    });
    const arrived = once(events, "arrived");
    const stream = session.request({ ":path": "/hello" });
    await arrived;
    stream.close(constants.NGHTTP2_CANCEL);
    await expect.poll(() => charged, soon).toEqual([{ status: 499, bytes: 0 }]);
  });
});
