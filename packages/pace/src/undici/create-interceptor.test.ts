import { Readable } from "node:stream";
import { type HttpAnswer, startHttpServer, type TestHttpServer } from "@sluice/test-servers";
import { createLimiter, renderHeaders } from "sluice";
import * as newest from "undici";
import * as six from "undici-6";
import * as seven from "undici-7";
import { afterEach, describe, expect, it } from "vitest";
import { HurriedTime } from "../testing/hurried-time.ts";
import { ManualTime, settled } from "../testing/manual-time.ts";
import { type CreateInterceptorOptions, createInterceptor } from "./create-interceptor.ts";

// Their types differ only in parts that the tests do not use.
const versions = { 6: six, 7: seven, 8: newest } as unknown as Readonly<Record<string, typeof newest>>;

let server: TestHttpServer | undefined;
let agent: newest.Dispatcher | undefined;

afterEach(async () => {
  await agent?.destroy();
  await server?.close();
  agent = server = undefined;
});

function refuse(times: number, status = 429, headers: Record<string, string> = { "Retry-After": "7" }): HttpAnswer {
  return (_, response, number) => {
    if (number <= times) response.writeHead(status, headers).end(`refused ${number}`);
    else response.writeHead(200, { "X-Number": String(number) }).end("done");
  };
}

/** A handler that pauses the answer as soon as it begins, with the methods of its version. */
function readPaused(major: string) {
  const log = { bytes: 0, ended: 0, errors: 0 };
  let resume = (): void => undefined;
  let abort = (): void => undefined;
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const onData = (chunk: Buffer): void => {
    log.bytes += chunk.length;
  };
  const onEnd = (): void => {
    log.ended += 1;
  };
  const onError = (): void => {
    log.errors += 1;
  };
  const newer: newest.Dispatcher.DispatchHandler = {
    onRequestStart(controller) {
      abort = () => controller.abort(new Error("enough"));
      resume = () => controller.resume();
    },
    onResponseStart(controller) {
      controller.pause();
      begin();
    },
    onResponseData: (_controller, chunk) => onData(chunk),
    onResponseEnd: onEnd,
    onResponseError: onError,
  };
  const old = {
    onConnect(cancel: (reason: Error) => void) {
      abort = () => cancel(new Error("enough"));
    },
    onHeaders(_status: number, _headers: unknown, again: () => void) {
      resume = again;
      begin();
      return false;
    },
    onData,
    onComplete: onEnd,
    onError,
  };
  const handler = (major === "6" ? old : newer) as newest.Dispatcher.DispatchHandler;
  return { handler, log, begun, resume: () => resume(), abort: () => abort() };
}

describe.each(Object.entries(versions))("undici %s", (major, undici) => {
  async function setUp(answer: HttpAnswer, options: CreateInterceptorOptions = {}) {
    server = await startHttpServer(answer);
    const time = new HurriedTime();
    const { clock, schedule } = time;
    const inner = new undici.Agent();
    agent = inner;
    const dispatcher = inner.compose(createInterceptor({ clock, schedule, random: () => 0, ...options }));
    const request = (path = "/", init: Record<string, unknown> = {}) =>
      undici.request(server!.url + path, { dispatcher, ...init });
    return { url: server.url, seen: server.seen, dispatcher, request, time };
  }

  it("sends a refused request again once the server's wait is over", async () => {
    const { request, seen, time } = await setUp(refuse(2));
    const { statusCode, headers, body } = await request();
    expect([statusCode, headers["x-number"], await body.text()]).toEqual([200, "3", "done"]);
    expect(seen).toHaveLength(3);
    expect(time.clock.nowMs()).toBe(14_000);
  });

  it("passes on the last answer unchanged", async () => {
    const { request, seen } = await setUp(refuse(9), { maxAttempts: 2 });
    const { statusCode, headers, body } = await request();
    expect([statusCode, headers["retry-after"], await body.text()]).toEqual([429, "7", "refused 2"]);
    expect(seen).toHaveLength(2);
  });

  it("passes on at once an answer that asks for too long a wait", async () => {
    const { request, time } = await setUp(refuse(9, 429, { "Retry-After": "61" }));
    const { statusCode, body } = await request();
    expect([statusCode, await body.text(), time.waits]).toEqual([429, "refused 1", []]);
  });

  it.each([
    ["POST", {}, "text", 1],
    ["POST", { "idempotency-key": "k" }, "text", 2],
    ["POST", ["Idempotency-Key", "k"], "text", 2],
    ["PUT", {}, Buffer.from("text"), 2],
  ])("repeats by method and key: %s %j", async (method, headers, body, times) => {
    const { request, seen } = await setUp(refuse(1));
    await (await request("/", { method, headers, body })).body.text();
    expect(seen.map((one) => one.body)).toEqual(Array(times).fill("text"));
  });

  it("does not repeat a stream", async () => {
    const { request, seen } = await setUp(refuse(9));
    async function* stream(): AsyncGenerator<string> {
      yield "streamed";
    }
    const { statusCode, body } = await request("/", { method: "PUT", body: stream() });
    expect([statusCode, await body.text(), seen[0]?.body, seen.length]).toEqual([429, "refused 1", "streamed", 1]);
  });

  it("passes on large answers whole, even to a slow reader", async () => {
    const large = "x".repeat(1_000_000);
    const { request } = await setUp((_request, response, number) => {
      if (number === 1) response.writeHead(429, { "Retry-After": "1" }).end(large);
      else response.end(large);
    });
    const { statusCode, body } = await request();
    await settled();
    await settled();
    let length = 0;
    for await (const chunk of body) {
      length += (chunk as Buffer).length;
      await settled();
    }
    expect([statusCode, length]).toEqual([200, large.length]);
  });

  it("does not wait for the end of a refused answer without one, and cuts it off", async () => {
    let cutOff = false;
    const { request } = await setUp((_request, response, number) => {
      response.writeHead(number === 1 ? 429 : 200, { "Retry-After": "1" });
      if (number === 1) {
        response.write("endless");
        response.once("close", () => {
          cutOff = true;
        });
      } else response.end("done");
    });
    expect(await (await request()).body.text()).toBe("done");
    await expect.poll(() => cutOff).toBe(true);
  });

  it("reads nothing of an answer while its reader pauses", async () => {
    const { dispatcher, url } = await setUp((_request, response) => response.end("x".repeat(1000)));
    const reader = readPaused(major);
    dispatcher.dispatch({ origin: url, path: "/", method: "GET" }, reader.handler);
    await reader.begun;
    for (let turn = 0; turn < 20; turn++) await settled();
    expect(reader.log).toEqual({ bytes: 0, ended: 0, errors: 0 });
    reader.resume();
    await expect.poll(() => reader.log).toEqual({ bytes: 1000, ended: 1, errors: 0 });
  });

  it("reports an abort once, though there is a wait to end and an answer to cut off", async () => {
    const time = new ManualTime();
    const { dispatcher, url } = await setUp(refuse(9), { clock: time.clock, schedule: time.schedule });
    const reader = readPaused(major);
    dispatcher.dispatch({ origin: url, path: "/", method: "GET" }, reader.handler);
    await expect.poll(() => time.timers).toBe(1);
    reader.abort();
    for (let turn = 0; turn < 20; turn++) await settled();
    expect(reader.log).toEqual({ bytes: 0, ended: 0, errors: 1 });
  });

  it("rejects at once when aborted while there is no connection yet", async () => {
    const connecting = new undici.Agent({ connect: () => undefined });
    const dispatcher = connecting.compose(createInterceptor());
    const controller = new AbortController();
    const rejected = expect(
      undici.request("http://127.0.0.1:9/", { dispatcher, signal: controller.signal }),
    ).rejects.toThrow("enough");
    await settled();
    controller.abort(new Error("enough"));
    await rejected;
    void connecting.destroy();
  });

  it("is under fetch as well", async () => {
    const { url, dispatcher, seen } = await setUp(refuse(1));
    const response = await undici.fetch(url, { dispatcher });
    expect([response.status, response.headers.get("x-number"), await response.text()]).toEqual([200, "2", "done"]);
    expect(seen).toHaveLength(2);
  });

  it("rejects at once when aborted while waiting, and leaves no timer", async () => {
    const time = new ManualTime();
    const { request, seen } = await setUp(refuse(9), { clock: time.clock, schedule: time.schedule });
    const controller = new AbortController();
    const rejected = expect(request("/", { signal: controller.signal })).rejects.toThrow("enough");
    await expect.poll(() => time.timers).toBe(1);
    controller.abort(new Error("enough"));
    await rejected;
    await settled();
    expect([seen.length, time.timers]).toEqual([1, 0]);
  });

  it("rejects at once when aborted while waiting for a turn, also under fetch", async () => {
    const time = new ManualTime();
    const { url, dispatcher, request, seen } = await setUp(refuse(0), {
      clock: time.clock,
      schedule: time.schedule,
      pace: { limit: "1/h burst 1" },
      maxWaitMs: 1e9,
    });
    await (await request()).body.text();
    const controller = new AbortController();
    const requested = expect(request("/", { signal: controller.signal })).rejects.toThrow("enough");
    const fetched = expect(undici.fetch(url, { dispatcher, signal: controller.signal })).rejects.toThrow("enough");
    await expect.poll(() => time.timers).toBe(1);
    controller.abort(new Error("enough"));
    await Promise.all([requested, fetched]);
    expect([seen.length, time.timers]).toEqual([1, 0]);
  });

  it("sends nothing for a signal that was aborted before", async () => {
    const { request, seen } = await setUp(refuse(0));
    await expect(request("/", { signal: AbortSignal.abort(new Error("before")) })).rejects.toThrow("before");
    expect(seen).toHaveLength(0);
  });

  it("aborts an answer that is being read", async () => {
    const { request } = await setUp((_request, response) => {
      response.writeHead(200);
      response.write("begun");
    });
    const controller = new AbortController();
    const { body } = await request("/", { signal: controller.signal });
    const read = expect(body.text()).rejects.toThrow("enough");
    controller.abort(new Error("enough"));
    await read;
  });

  it("passes on connection errors, once, and does not retry them", async () => {
    const { request, seen } = await setUp((incoming) => incoming.socket.destroy());
    await expect(request()).rejects.toThrow();
    expect(seen).toHaveLength(1);
  });

  it("passes on errors in the request itself", async () => {
    const { request } = await setUp(refuse(0));
    await expect(request("/", { method: "NOT A METHOD" })).rejects.toThrow();
  });

  it("keeps the caller's own limit", async () => {
    const { request, time } = await setUp(refuse(0), { pace: { limit: "1/s burst 4" } });
    await Promise.all(Array.from({ length: 6 }, async () => (await request()).body.text()));
    expect(time.clock.nowMs()).toBe(2000);
  });

  it("never awaits more answers at once than the caller wants", async () => {
    let most = 0;
    let running = 0;
    const answer: HttpAnswer = (_request, response) => {
      running += 1;
      most = Math.max(most, running);
      setImmediate(() => {
        running -= 1;
        response.end();
      });
    };
    const { request } = await setUp(answer, { pace: { concurrency: 2 }, clock: undefined, schedule: undefined });
    await Promise.all(Array.from({ length: 6 }, async () => (await request()).body.text()));
    expect(most).toBe(2);
  });

  it("reports with a PaceError that nothing was sent if no turn comes in time", async () => {
    const { request, seen } = await setUp(refuse(0), { pace: { limit: "1/h burst 1" } });
    await (await request()).body.text();
    await expect(request()).rejects.toMatchObject({ name: "PaceError", code: "wait_too_long" });
    expect(seen).toHaveLength(1);
  });

  it("meets a Sluice on the other side without being refused", async () => {
    const time = new HurriedTime();
    const limits = [{ by: [], windows: ["5/s burst 5"] }];
    const limiter = createLimiter({
      clock: time.clock,
      policies: { policies: [{ id: "api", limits, on_failure: "open" }] },
    });
    const { request } = await setUp(
      (_request, response) => {
        const decision = limiter.checkSync({});
        response.writeHead(decision.allowed ? 200 : 429, renderHeaders(decision)).end();
      },
      { clock: time.clock, schedule: time.schedule, maxAttempts: 1 },
    );
    for (let call = 0; call < 20; call++) {
      const { statusCode, body } = await request();
      await body.text();
      expect(statusCode).toBe(200);
    }
  });

  it.each(["refused", "aborted"])("destroys the body of a request that is %s before it is sent", async (how) => {
    const time = new ManualTime();
    const { clock, schedule } = time;
    const limit = how === "refused" ? "1/h burst 1" : "1/s burst 1";
    const { request, seen } = await setUp(refuse(0), { pace: { limit }, clock, schedule });
    await (await request()).body.text();
    const body = new Readable({ read: () => undefined });
    const controller = new AbortController();
    const failed = request("/", { method: "POST", body, signal: controller.signal }).catch((error) => error);
    if (how === "aborted") {
      await expect.poll(() => time.timers).toBe(1);
      controller.abort(new Error("enough"));
    }
    expect(await failed).toBeInstanceOf(Error);
    expect([body.destroyed, seen.length, time.timers]).toEqual([true, 1, 0]);
  });

  it("fails if its body breaks while it waits", async () => {
    const time = new ManualTime();
    const { clock, schedule } = time;
    const { request, seen } = await setUp(refuse(0), { pace: { limit: "1/s burst 1" }, clock, schedule });
    await (await request()).body.text();
    const body = new Readable({ read: () => undefined });
    const failed = request("/", { method: "POST", body }).catch((error) => error);
    await expect.poll(() => time.timers).toBe(1);
    body.destroy(new Error("broken"));
    expect(await failed).toMatchObject({ message: "broken" });
    await settled();
    expect([seen.length, time.timers]).toEqual([1, 0]);
  });

  it.each([[{ "idempotency-key": undefined }], [{ "idempotency-key": "" }], [["idempotency-key", ""]]])(
    "repeats no POST for an empty idempotency key: %j",
    async (headers) => {
      const { request, seen } = await setUp(refuse(9));
      await (await request("/", { method: "POST", headers: headers as never })).body.text();
      expect(seen).toHaveLength(1);
    },
  );

  it("leaves headers that can be read once intact, and does not repeat such requests", async () => {
    const own: unknown[] = [];
    const { request } = await setUp((incoming, response, number) => {
      own.push(incoming.headers["x-own"]);
      refuse(9)(incoming, response, number);
    });
    const headers = new Map([["x-own", "own"]]).entries();
    await (await request("/", { headers: headers as never })).body.text();
    expect(own).toEqual(["own"]);
  });

  it("passes on a HEAD and an empty answer", async () => {
    const { request } = await setUp((_request, response) => response.writeHead(204).end());
    expect((await request("/", { method: "HEAD" })).statusCode).toBe(204);
    const { statusCode, body } = await request();
    expect([statusCode, await body.text()]).toEqual([204, ""]);
  });
});

it.each([
  ["pace", "10/s"],
  ["repeatable", true],
  ["key", "a"],
  ["statuses", 429],
])("names a wrong option: %s", (name, value) => {
  expect(() => createInterceptor({ [name]: value })).toThrow(
    expect.objectContaining({ code: "invalid_request", problems: [expect.objectContaining({ path: [name] })] }),
  );
});
