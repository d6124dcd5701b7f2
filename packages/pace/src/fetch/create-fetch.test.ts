import { type HttpAnswer, startHttpServer, type TestHttpServer } from "@sluice/test-servers";
import { createLimiter, renderHeaders } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { HurriedTime } from "../testing/hurried-time.ts";
import { ManualTime, settled } from "../testing/manual-time.ts";
import { type CreateFetchOptions, createFetch } from "./create-fetch.ts";

let server: TestHttpServer | undefined;
let other: TestHttpServer | undefined;

afterEach(async () => {
  await server?.close();
  await other?.close();
  server = other = undefined;
});

/** A server, and a fetch for which time passes at once. */
async function setUp(answer: HttpAnswer, options: CreateFetchOptions = {}) {
  server = await startHttpServer(answer);
  const time = new HurriedTime();
  const { clock, schedule } = time;
  const waits: number[] = [];
  const onWait: CreateFetchOptions["onWait"] = (event) => waits.push(event.waitMs);
  const paced = createFetch({ clock, schedule, random: () => 0, onWait, ...options });
  return { url: server.url, seen: server.seen, fetch: paced, time, waits };
}

/** Refuses the first `times` requests. */
function refuse(times: number, status = 429, headers: Record<string, string> = { "Retry-After": "7" }): HttpAnswer {
  return (_, response, number) => {
    if (number <= times) response.writeHead(status, headers).end(`refused ${number}`);
    else response.writeHead(200, { "X-Number": String(number) }).end("done");
  };
}

describe("a refused request", () => {
  it("is sent again once the server's wait is over", async () => {
    const { url, seen, fetch, waits } = await setUp(refuse(2));
    const response = await fetch(url);
    expect([response.status, await response.text()]).toEqual([200, "done"]);
    expect(seen).toHaveLength(3);
    expect(waits).toEqual([7000, 7000]);
  });

  it("is returned unchanged after the last attempt", async () => {
    const { url, seen, fetch } = await setUp(refuse(9), { maxAttempts: 2 });
    const response = await fetch(url);
    expect([response.status, response.headers.get("retry-after"), await response.text()]).toEqual([
      429,
      "7",
      "refused 2",
    ]);
    expect(seen).toHaveLength(2);
  });

  it("is returned at once if the wait is too long", async () => {
    const { url, seen, fetch, time } = await setUp(refuse(9, 429, { "Retry-After": "61" }));
    const response = await fetch(url);
    expect([response.status, await response.text()]).toEqual([429, "refused 1"]);
    expect([seen.length, time.waits]).toEqual([1, []]);
  });

  it("waits for the reset of an exhausted limit, without Retry-After", async () => {
    const { url, fetch, waits } = await setUp(refuse(1, 429, { RateLimit: '"a";r=0;t=4' }));
    expect((await fetch(url)).status).toBe(200);
    expect(waits).toEqual([4000]);
  });

  it.each([
    [503, { "Retry-After": "1" }, 200],
    [503, {}, 503],
    [500, { "Retry-After": "1" }, 500],
    [403, { "Retry-After": "1" }, 403],
  ])("is one by %s with %j: ends with %s", async (status, headers, ends) => {
    const { url, fetch } = await setUp(refuse(1, status, headers));
    const response = await fetch(url);
    expect(response.status).toBe(ends);
    await response.text();
  });

  it("may have a status that the caller names", async () => {
    const { url, fetch } = await setUp(refuse(1, 403, { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "2" }), {
      statuses: [403, 429],
    });
    expect((await fetch(url)).status).toBe(200);
  });

  it.each([
    ["POST", {}, 1],
    ["PATCH", {}, 1],
    ["POST", { "Idempotency-Key": "k1" }, 2],
    ["PUT", {}, 2],
    ["DELETE", {}, 2],
  ])("is repeated by the method: %s %j is sent %s times", async (method, headers, times) => {
    const { url, seen, fetch } = await setUp(refuse(1));
    await (await fetch(url, { method, headers, body: "the body" })).text();
    expect(seen.map(({ body }) => body)).toEqual(Array(times).fill("the body"));
  });

  it("is repeated if its caller allows it", async () => {
    const { url, seen, fetch } = await setUp(refuse(1), {
      repeatable: ({ url }) => (url.pathname === "/search" ? true : undefined),
    });
    await (await fetch(`${url}/search`, { method: "POST", body: "q" })).text();
    expect(seen).toHaveLength(2);
  });

  it("is not repeated with a stream for a body", async () => {
    const { url, seen, fetch } = await setUp(refuse(9));
    const body = new Blob(["streamed"]).stream();
    const response = await fetch(url, { method: "PUT", body, duplex: "half" } as RequestInit);
    expect([response.status, seen.length, seen[0]?.body]).toEqual([429, 1, "streamed"]);
  });

  it("uses the same connection again, because the answer is read to its end", async () => {
    const { url, seen, fetch } = await setUp(refuse(2));
    await (await fetch(url)).text();
    expect(new Set(seen.map(({ port }) => port)).size).toBe(1);
  });

  it("does not wait for the end of an answer without one, and cuts it off", async () => {
    let cutOff = false;
    const { url, fetch } = await setUp((_, response, number) => {
      response.writeHead(number === 1 ? 429 : 200, { "Retry-After": "1" });
      if (number === 1) {
        response.write("endless");
        response.once("close", () => {
          cutOff = true;
        });
      } else response.end("done");
    });
    expect(await (await fetch(url)).text()).toBe("done");
    await expect.poll(() => cutOff).toBe(true);
  });
});

describe("a Request", () => {
  it("is sent again whole, and is used up afterwards as by fetch itself", async () => {
    const { url, seen, fetch } = await setUp(refuse(2));
    const request = new Request(url, { method: "PUT", body: "whole" });
    expect((await fetch(request)).status).toBe(200);
    expect(seen.map(({ body }) => body)).toEqual(["whole", "whole", "whole"]);
    expect(request.bodyUsed).toBe(true);
  });

  it("is used up even if one attempt was enough", async () => {
    const { url, fetch } = await setUp(refuse(0));
    const request = new Request(url, { method: "PUT", body: "whole" });
    await (await fetch(request)).text();
    expect(request.bodyUsed).toBe(true);
    await expect(fetch(request)).rejects.toBeInstanceOf(TypeError);
  });

  it("without a body can be used again", async () => {
    const { url, fetch } = await setUp(refuse(1));
    const request = new Request(url);
    await (await fetch(request)).text();
    expect((await fetch(request)).status).toBe(200);
  });

  it("has its method, headers and body replaced by the second argument", async () => {
    const { url, seen, fetch } = await setUp(refuse(1));
    const request = new Request(url, { method: "POST", body: "old" });
    await (await fetch(request, { headers: { "Idempotency-Key": "k" }, body: "new" })).text();
    expect(seen.map(({ body }) => body)).toEqual(["new", "new"]);
    expect(request.bodyUsed).toBe(false);
  });
});

describe("aborting", () => {
  it("rejects at once with the signal's reason while waiting, and leaves no timer", async () => {
    const time = new ManualTime();
    const { clock, schedule } = time;
    const { url, seen, fetch } = await setUp(refuse(9), { clock, schedule });
    const controller = new AbortController();
    const rejected = expect(fetch(url, { signal: controller.signal })).rejects.toThrow("enough");
    await expect.poll(() => time.timers).toBe(1);
    controller.abort(new Error("enough"));
    await rejected;
    await settled();
    expect([seen.length, time.timers]).toEqual([1, 0]);
  });

  it("works through a Request's own signal, and while waiting for a turn", async () => {
    const time = new ManualTime();
    const { clock, schedule } = time;
    const { url, seen, fetch } = await setUp(refuse(0), {
      clock,
      schedule,
      pace: { limit: "1/h burst 1" },
      maxWaitMs: 1e9,
    });
    await (await fetch(url)).text();
    const controller = new AbortController();
    const rejected = expect(fetch(new Request(url, { signal: controller.signal }))).rejects.toMatchObject({
      name: "AbortError",
    });
    await expect.poll(() => time.timers).toBe(1);
    controller.abort();
    await rejected;
    expect([seen.length, time.timers]).toEqual([1, 0]);
  });

  it("before the call sends nothing", async () => {
    const { url, seen, fetch } = await setUp(refuse(0));
    await expect(fetch(url, { signal: AbortSignal.abort(new Error("before")) })).rejects.toThrow("before");
    expect(seen).toHaveLength(0);
  });
});

describe("network errors", () => {
  it("are passed on", async () => {
    const { url, fetch } = await setUp((request) => request.socket.destroy());
    await expect(fetch(url)).rejects.toBeInstanceOf(TypeError);
  });

  const breakFirst: HttpAnswer = (request, response, number) => {
    if (number === 1) request.socket.destroy();
    else response.end("done");
  };

  it("are followed by another attempt if that is enabled and the request may be repeated", async () => {
    const { url, fetch, seen } = await setUp(breakFirst, { networkErrors: true });
    expect(await (await fetch(url)).text()).toBe("done");
    expect(seen).toHaveLength(2);
  });

  it("are never followed by another attempt if the request may not be repeated", async () => {
    const { url, fetch, seen } = await setUp(breakFirst, { networkErrors: true });
    await expect(fetch(url, { method: "POST", body: "x" })).rejects.toBeInstanceOf(TypeError);
    expect(seen).toHaveLength(1);
  });
});

describe("the budget", () => {
  it("bounds retries for each origin, and returns the answer when none are left", async () => {
    const { url, fetch, seen } = await setUp(refuse(99, 429, {}), {
      maxAttempts: 9,
      budget: { perMinute: 2, share: 0 },
    });
    other = await startHttpServer(refuse(1, 429, {}));
    expect((await fetch(url)).status).toBe(429);
    expect(seen).toHaveLength(3);
    expect((await fetch(other.url)).status).toBe(200);
  });

  it("can be turned off", async () => {
    const { url, fetch } = await setUp(refuse(20, 429, {}), { maxAttempts: 30, budget: false });
    expect((await fetch(url)).status).toBe(200);
  });
});

describe("the pace", () => {
  it("keeps the caller's own limit, for each origin", async () => {
    const { url, fetch, time } = await setUp(refuse(0), { pace: { limit: "1/s burst 1" } });
    other = await startHttpServer(refuse(0));
    for (let call = 0; call < 3; call++) await (await fetch(url)).text();
    expect(time.clock.nowMs()).toBe(2000);
    await (await fetch(other.url)).text();
    expect(time.clock.nowMs()).toBe(2000);
  });

  it("keeps it for a key of the caller's choice", async () => {
    const { url, fetch, time } = await setUp(refuse(0), {
      pace: { limit: "1/s burst 1" },
      key: ({ url }) => url.pathname,
    });
    for (const path of ["/a", "/b", "/a"]) await (await fetch(url + path)).text();
    expect(time.clock.nowMs()).toBe(1000);
  });

  it("keeps it also for keys that were forgotten meanwhile", async () => {
    const { url, fetch, time } = await setUp(refuse(0), {
      pace: { limit: "1/s burst 1" },
      key: ({ url }) => url.pathname,
      maxKeys: 1,
    });
    for (const path of ["/a", "/b", "/c", "/a"]) await (await fetch(url + path)).text();
    expect(time.clock.nowMs()).toBe(1000);
  });

  it("stops other calls too while the server wants none", async () => {
    const { url, fetch, time, seen } = await setUp(refuse(1));
    const post = await fetch(url, { method: "POST" });
    expect([post.status, time.clock.nowMs()]).toEqual([429, 0]);
    expect((await fetch(url)).status).toBe(200);
    expect([time.clock.nowMs(), seen.length]).toEqual([7000, 2]);
  });

  it("does not lock out: a refusal for longer than a call may wait does not stop other calls", async () => {
    const { url, fetch, time } = await setUp(refuse(1, 429, { "Retry-After": "3600" }));
    expect((await fetch(`${url}/export`)).status).toBe(429);
    expect((await fetch(`${url}/orders`)).status).toBe(200);
    expect(time.clock.nowMs()).toBe(0);
  });

  it("sends nothing if no turn comes for longer than a call may wait", async () => {
    const { url, fetch, seen } = await setUp(refuse(0), { pace: { limit: "1/h burst 1" } });
    await (await fetch(url)).text();
    await expect(fetch(url)).rejects.toMatchObject({
      name: "PaceError",
      code: "wait_too_long",
      retryAfterMs: 3_600_000,
    });
    expect(seen).toHaveLength(1);
  });

  it("stops others with jitter, and never for longer than they may wait", async () => {
    const { url, fetch, time } = await setUp(refuse(1, 429, { "Retry-After": "60" }), { random: () => 1 });
    await (await fetch(url, { method: "POST" })).text();
    expect((await fetch(url)).status).toBe(200);
    expect(time.clock.nowMs()).toBe(60_000);
  });

  it("is not stopped by a Retry-After without a refusal", async () => {
    const { url, fetch, time } = await setUp(refuse(1, 202, { "Retry-After": "30" }));
    for (let call = 0; call < 2; call++) await (await fetch(url)).text();
    expect(time.clock.nowMs()).toBe(0);
  });

  it("slows down before a limit is reached", async () => {
    const { url, fetch, time } = await setUp((_, response) => {
      response.writeHead(200, { "RateLimit-Policy": '"a";q=100;w=60', RateLimit: '"a";r=9;t=20' }).end();
    });
    for (let call = 0; call < 3; call++) await (await fetch(url)).text();
    expect(time.clock.nowMs()).toBe(4000);
  });

  it("can be turned off", async () => {
    const { url, fetch, time } = await setUp(refuse(1), { pace: false });
    await (await fetch(url, { method: "POST" })).text();
    await (await fetch(url)).text();
    expect(time.clock.nowMs()).toBe(0);
  });

  it("meets a Sluice on the other side without ever being refused twice", async () => {
    const time = new HurriedTime();
    const limiter = createLimiter({
      clock: time.clock,
      policies: { policies: [{ id: "api", limits: [{ by: [], windows: ["5/s burst 5"] }], on_failure: "open" }] },
    });
    let refused = 0;
    const { url, fetch } = await setUp(
      (_, response) => {
        const decision = limiter.checkSync({});
        if (!decision.allowed) refused += 1;
        response.writeHead(decision.allowed ? 200 : 429, renderHeaders(decision)).end();
      },
      { clock: time.clock, schedule: time.schedule },
    );
    const statuses: number[] = [];
    for (let call = 0; call < 40; call++) {
      const response = await fetch(url);
      statuses.push(response.status);
      await response.text();
    }
    expect(statuses).toEqual(Array(40).fill(200));
    expect(refused).toBe(0);
  });

  it("gets a whole crowd through a limit", async () => {
    const time = new HurriedTime();
    const limiter = createLimiter({
      clock: time.clock,
      policies: { policies: [{ id: "api", limits: [{ by: [], windows: ["20/s burst 5"] }], on_failure: "open" }] },
    });
    const { url, fetch } = await setUp(
      (_, response) => {
        const decision = limiter.checkSync({});
        response.writeHead(decision.allowed ? 200 : 429, renderHeaders(decision)).end();
      },
      { clock: time.clock, schedule: time.schedule, maxAttempts: 100, budget: false },
    );
    const statuses = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const response = await fetch(url);
        await response.text();
        return response.status;
      }),
    );
    expect(statuses).toEqual(Array(50).fill(200));
  });
});

describe("outside its scope", () => {
  it("passes other schemes, and invalid URLs", async () => {
    const { fetch } = await setUp(refuse(0));
    expect(await (await fetch("data:text/plain,hello")).text()).toBe("hello");
    await expect(fetch("/relative")).rejects.toBeInstanceOf(TypeError);
  });

  it("names wrong options at once", () => {
    expect(() => createFetch({ maxAttempts: 0 })).toThrow(/maxAttempts/);
    expect(() => createFetch({ pace: { limit: "fast" } })).toThrow(/limit/);
    expect(() => createFetch({ pace: { concurrency: 0 } })).toThrow(/concurrency/);
    expect(() => createFetch({ budget: { share: -1 } })).toThrow(/share/);
    expect(() => createFetch({ maxKeys: 0 })).toThrow(/maxKeys/);
  });

  it("passes on the error of a callback that throws, and nothing hangs", async () => {
    const { url, fetch } = await setUp(refuse(1), {
      onWait: () => {
        throw new Error("in the callback");
      },
    });
    await expect(fetch(url)).rejects.toThrow("in the callback");
    expect(await (await fetch(url)).text()).toBe("done");
  });

  it("works on the machine's own clock and timers", async () => {
    const { url } = await setUp(refuse(1, 429, { "Retry-After-Ms": "5" }));
    const fetch = createFetch({ clock: undefined, random: () => 0 });
    expect((await fetch(url)).status).toBe(200);
  });
});

describe("a request that was not sent", () => {
  function watchedStream() {
    const ended: unknown[] = [];
    return { ended, body: new ReadableStream({ cancel: (reason) => void ended.push(reason) }) };
  }

  it("has its body cancelled if no turn comes", async () => {
    const { url, fetch, seen } = await setUp(refuse(0), { pace: { limit: "1/h burst 1" } });
    await fetch(url);
    const { ended, body } = watchedStream();
    const sent = fetch(url, { method: "POST", body, duplex: "half" } as RequestInit);
    await expect(sent).rejects.toMatchObject({ code: "wait_too_long" });
    expect([ended.length, seen.length]).toEqual([1, 1]);
  });

  it("has its body cancelled if it is aborted while waiting", async () => {
    const time = new ManualTime();
    const { clock, schedule } = time;
    const { url, fetch } = await setUp(refuse(0), { pace: { limit: "1/s burst 1" }, clock, schedule });
    await fetch(url);
    const { ended, body } = watchedStream();
    const controller = new AbortController();
    const init = { method: "POST", body, duplex: "half", signal: controller.signal } as RequestInit;
    const sent = fetch(url, init);
    await expect.poll(() => time.timers).toBe(1);
    controller.abort(new Error("enough"));
    await expect(sent).rejects.toThrow("enough");
    expect([ended, time.timers]).toEqual([[new Error("enough")], 0]);
  });

  it("is not one that was sent and failed: its body is left to the sender", async () => {
    const { ended, body } = watchedStream();
    const fetch = createFetch({ fetch: () => Promise.reject(new Error("lost")) });
    await expect(fetch("http://a.example/", { method: "POST", body })).rejects.toThrow("lost");
    expect(ended).toEqual([]);
  });

  it("is reported as sent before, if it was", async () => {
    const options = { pace: { limit: "1/m burst 1" }, maxWaitMs: 8000 };
    const { url, fetch, seen } = await setUp(refuse(9), options);
    await expect(fetch(url)).rejects.toMatchObject({ code: "wait_too_long", attempts: 1 });
    await expect(fetch(url)).rejects.toMatchObject({ code: "wait_too_long", attempts: 0 });
    expect(seen).toHaveLength(1);
  });
});

describe("keys", () => {
  it.each([undefined, null, 5, {}, "x".repeat(5000)])("that are invalid are refused: %s", async (key) => {
    const { url, fetch, seen } = await setUp(refuse(0), { key: () => key as string });
    await expect(fetch(url)).rejects.toMatchObject({ code: "invalid_request", problems: [{ path: ["key"] }] });
    expect(seen).toHaveLength(0);
  });

  it("that the server has stopped are not dropped before others", async () => {
    const { url, fetch, seen, time } = await setUp(
      (request, response) => {
        if (request.url === "/a") response.writeHead(429, { "Retry-After": "7" });
        response.end();
      },
      { key: (request) => request.url.pathname, maxKeys: 2, maxAttempts: 1 },
    );
    for (const path of ["/a", "/b", "/c"]) await fetch(url + path);
    expect(time.waits).toEqual([]);
    await fetch(`${url}/a`);
    expect([time.waits, seen.length]).toEqual([[7000], 4]);
  });
});

describe("headers that can be read once", () => {
  function* once(): Generator<[string, string]> {
    yield ["Idempotency-Key", "k"];
    yield ["X-Own", "own"];
  }

  it("are sent each time", async () => {
    const own: unknown[] = [];
    const { url, fetch } = await setUp((request, response, number) => {
      own.push(request.headers["x-own"]);
      refuse(1)(request, response, number);
    });
    const init = { method: "POST", body: "b", headers: once() as unknown as [string, string][] };
    expect((await fetch(url, init)).status).toBe(200);
    expect(own).toEqual(["own", "own"]);
  });
});

it("is not repeated for an empty idempotency key", async () => {
  const { url, fetch, seen } = await setUp(refuse(9));
  await fetch(url, { method: "POST", headers: { "Idempotency-Key": "" } });
  expect(seen).toHaveLength(1);
});

it.each([
  ["pace", "10/s"],
  ["pace", true],
  ["budget", true],
  ["statuses", 429],
  ["statuses", ["429"]],
  ["repeatable", true],
  ["networkErrors", "no"],
  ["key", "a"],
  ["onWait", {}],
  ["fetch", {}],
  ["random", 0.5],
  ["clock", {}],
  ["schedule", 5],
  ["maxWaitMs", "1s"],
])("names a wrong option: %s", (name, value) => {
  expect(() => createFetch({ [name]: value })).toThrow(
    expect.objectContaining({ code: "invalid_request", problems: [expect.objectContaining({ path: [name] })] }),
  );
});

it.each([null, 5, "10/s"])("refuses options that are not an object: %s", (options) => {
  expect(() => createFetch(options as never)).toThrow(expect.objectContaining({ code: "invalid_request" }));
});

it("is stopped for as long as requested, whatever the jitter source returns", async () => {
  const { url, fetch, time } = await setUp(refuse(1), { random: () => Number.NaN, maxAttempts: 1 });
  await fetch(url);
  await fetch(url);
  expect(time.waits).toEqual([7000]);
});
