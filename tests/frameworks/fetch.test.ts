import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { type FetchOptions, findTicket, type Limits, rateLimit, type Sent } from "@sluice/middleware/fetch";
import { limit } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { findImports } from "../repository/module-syntax.ts";
import type { RunningApp } from "./framework-under-test.ts";
import { ask } from "./http-exchange.ts";
import { leaveDuringAnswer } from "./leave-early.ts";
import { listenOnLoopback } from "./listen-on-loopback.ts";
import { describeMiddleware } from "./middleware-contract.ts";
import { thousandAtATime } from "./thousand-at-a-time.ts";

/** What a runtime passes in addition to the request; here it is @hono/node-server. */
interface Connection {
  readonly incoming: IncomingMessage;
}

type Handler = (request: Request) => Response | Promise<Response>;

async function handle(request: Request): Promise<Response> {
  const path = decodeURIComponent(new URL(request.url).pathname);
  if (path === "/hello") return new Response("hello");
  if (path.startsWith("/items/")) return new Response(path.slice("/items/".length));
  if (path === "/broken") throw new Error("broken");
  if (path === "/echo") return new Response(request.body);
  if (path === "/stream") return new Response(thousandAtATime(3));
  if (path === "/endless") return new Response(thousandAtATime(1, { ends: false }));
  if (path === "/charged") {
    const ticket = findTicket(request)!;
    await ticket.charge(5);
    return new Response(String(ticket.decision.remaining));
  }
  return new Response("nothing", { status: 404 });
}

/** Errors of handlers are an app's to answer, as there is no framework that would. */
const answerErrors =
  (handler: Handler): Handler =>
  async (request) => {
    try {
      return await handler(request);
    } catch {
      return new Response("broken", { status: 500 });
    }
  };

const peer = (_request: Request, { incoming }: Connection): string | undefined => incoming.socket.remoteAddress;

function listen(limits: Limits, options: FetchOptions = {}): Promise<RunningApp> {
  const limited = rateLimit(limits, { peer, ...options })(answerErrors(handle));
  const listener = getRequestListener(limited, {
    overrideGlobalObjects: false,
  });
  return listenOnLoopback(createServer(listener));
}

describeMiddleware({
  name: "fetch",
  knowsRoutes: false,
  header: (name) => (request: Request) => request.headers.get(name) ?? undefined,
  start: async (limits, options) => listen(limits, options),
});

const soon = { timeout: 30_000, interval: 20 };
const running: RunningApp[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) await one.close();
});

const ip = (): string => "192.0.2.1";
const get = (path = "/hello", init?: RequestInit): Request => new Request(`https://api.example${path}`, init);

describe("fetch: set up", () => {
  it("refuses limits by an address that it could not know, and says what to do", () => {
    expect(() => rateLimit("1/s")).toThrow(/ip is required, or `peer`, or the number of `trustedProxies`/);
    expect(() => rateLimit("1/s", { trustedProxies: 0 })).toThrow(/ip is required/);
    expect(() => rateLimit("1/s", { trustedProxies: ["10.0.0.0/8"] })).toThrow(/ip is required/);
    expect(() => rateLimit({ policies: { policies: [] } })).toThrow(/ip is required/);
    expect(() => rateLimit("1/s", { trustedProxies: 1 })).not.toThrow();
    expect(() => rateLimit("1/s", { ip })).not.toThrow();
    expect(() => rateLimit("1/s", { peer: ip })).not.toThrow();
    expect(() => rateLimit(limit("1/s").by("user"))).not.toThrow();
    const byUser = { id: "a", limits: [{ by: ["user"], windows: ["1/s"] }], on_failure: "open" };
    // A policy for some requests leaves others to the default policy, which counts by subject.
    const some = { ...byUser, match: { endpoint: "/v1/**" } };
    expect(() => rateLimit({ policies: { policies: [some] } })).toThrow(/ip is required/);
    expect(() => rateLimit({ policies: { policies: [some], default: { unlimited: true } } })).not.toThrow();
    expect(() => rateLimit({ policies: { policies: [{ ...byUser, deny: { ip: ["192.0.2.0/24"] } }] } })).toThrow(/ip/);
  });

  it("causes a warning at a check, if the policies are not known here", async () => {
    const codes: unknown[] = [];
    const listener = (warning: Error): void => void codes.push((warning as NodeJS.ErrnoException).code);
    process.on("warning", listener);
    const { limiter } = limit("1/h").by("ip");
    const elsewhere = {
      check: limiter.check.bind(limiter),
      charge: limiter.charge.bind(limiter),
      give: limiter.give.bind(limiter),
    };
    const limited = rateLimit(elsewhere)(handle);
    expect((await limited(get())).status).toBe(200);
    expect((await limited(get())).status).toBe(429);
    await expect.poll(() => codes, soon).toContain("SLUICE_NO_ADDRESS");
    process.off("warning", listener);
  });

  it("imports no Node module, so that it runs without Node", () => {
    const root = new URL("../../packages/", import.meta.url);
    const entries: Readonly<Record<string, string>> = {
      sluice: "core/src/index.ts",
      "sluice/internal": "core/src/internal.ts",
      "sluice/shape": "core/src/shape/index.ts",
      "sluice/store": "core/src/store.ts",
    };
    const seen = new Set<string>();
    const outside: string[] = [];
    const visit = (file: URL): void => {
      if (seen.has(file.href)) return;
      seen.add(file.href);
      const source = readFileSync(file, "utf8");
      expect(source).not.toMatch(/\bBuffer\b/);
      for (const { specifier } of findImports(source)) {
        if (specifier.startsWith(".")) visit(new URL(specifier, file));
        else if (specifier in entries) visit(new URL(entries[specifier]!, root));
        else outside.push(specifier);
      }
    };
    visit(new URL("middleware/src/fetch.ts", root));
    expect(outside).toEqual([]);
    expect(seen.size).toBeGreaterThan(20);
  });
});

describe("fetch: answers", () => {
  it("are synchronous if the handler is and counters are in this process", async () => {
    const limited = rateLimit("1/h", { ip })(() => new Response("hello"));
    expect(limited(get())).toBeInstanceOf(Response);
    const refused = limited(get());
    expect(refused).toBeInstanceOf(Response);
    expect((await refused).status).toBe(429);
  });

  it("are the handler's own if their header fields can be set, else copies", async () => {
    const own = new Response("hello");
    const fetched = await fetch("data:text/plain,hello");
    const redirected = Response.redirect("https://api.example/", 307);
    const answers = [own, fetched, redirected];
    const limited = rateLimit("9/h", { ip })((_request, i: number) => answers[i]!);
    const headed = await Promise.all(answers.map((_, i) => limited(get(), i)));
    expect(headed.map(({ status, headers }) => [status, headers.get("x-ratelimit-remaining")])).toEqual([
      [200, "8"],
      [200, "7"],
      [307, "6"],
    ]);
    expect(headed.map((answer, i) => answer === answers[i])).toEqual([true, false, false]);
    expect(await headed[1]!.text()).toBe("hello");
    expect(headed[1]!.headers.get("content-type")).toMatch(/^text\/plain/);
    expect(headed[2]!.headers.get("location")).toBe("https://api.example/");
  });

  it("without a body stay without one", async () => {
    const charged: Sent[] = [];
    const limited = rateLimit("9/h", { ip, charge: (_request, sent) => void charged.push(sent) })(
      (_request, status: number) => new Response(null, { status }),
    );
    for (const status of [204, 205, 304]) {
      const answer = await limited(get(), status);
      expect([answer.status, answer.body]).toEqual([status, null]);
      expect(answer.headers.has("x-ratelimit-limit")).toBe(true);
    }
    expect(charged).toEqual([204, 205, 304].map((status) => ({ status, bytes: 0 })));
  });

  it("that begin a WebSocket, or are undefined, pass unchanged", async () => {
    const charged: Sent[] = [];
    // No other runtime but theirs makes these: here is one whose fields cannot be set, nor be copied.
    const switching = Object.defineProperty(await fetch("data:,"), "status", { value: 101 });
    const answers = [switching, Response.error(), undefined];
    const limited = rateLimit("9/h", { ip, charge: (_request, sent) => void charged.push(sent) })(
      (_request, i: number) => answers[i],
    );
    expect(answers.map((answer, i) => limited(get(), i) === answer)).toEqual([true, true, true]);
    expect(charged).toEqual([
      { status: 101, bytes: 0 },
      { status: 0, bytes: 0 },
      { status: 101, bytes: 0 },
    ]);
  });

  it("are made by a handler that gets all that the runtime gave", async () => {
    const limited = rateLimit("9/h", { ip: (_request, env: { address: string }) => env.address })(
      (request, env, context: string) => new Response(`${request.method} ${env.address} ${context}`),
    );
    expect(await (await limited(get(), { address: "192.0.2.7" }, "context")).text()).toBe("GET 192.0.2.7 context");
  });

  it("have the fields of the inner of two limits, and both count", async () => {
    const outer = rateLimit("9/h", { ip, name: "outer" });
    const inner = rateLimit("1/h", { ip, name: "inner" });
    const limited = inner(outer(handle));
    expect((await limited(get())).headers.get("ratelimit-policy")).toMatch(/^"inner\//);
    expect((await limited(get())).status).toBe(429);
  });
});

describe("fetch: charging", () => {
  const charged: Sent[] = [];
  const limited = rateLimit("1000/h", {
    ip,
    charge: (_request, sent) => {
      charged.push(sent);
      return 0;
    },
  })(handle);
  afterEach(() => void charged.splice(0));

  it("counts bytes as they are read, and does not read ahead", async () => {
    let pulls = 0;
    const streamed = rateLimit("9/h", { ip, charge: (_request, sent) => void charged.push(sent) })(
      () => new Response(thousandAtATime(3, { onPull: () => void pulls++ })),
    );
    const reader = (await streamed(get())).body!.getReader();
    await new Promise((resolve) => setImmediate(resolve));
    expect(pulls).toBe(0);
    for (let i = 1; i <= 3; i++) {
      await reader.read();
      expect(pulls).toBe(i);
    }
    expect(charged).toEqual([]);
    expect((await reader.read()).done).toBe(true);
    expect(charged).toEqual([{ status: 200, bytes: 3000 }]);
  });

  it("counts once what was sent when reading is cancelled, and cancels the source", async () => {
    const reasons: unknown[] = [];
    const given = rateLimit("9/h", { ip, charge: (_request, sent) => void charged.push(sent) })(() => {
      const source = thousandAtATime(9).getReader();
      return new Response(
        new ReadableStream<Uint8Array>({
          pull: async (controller) => controller.enqueue((await source.read()).value!),
          cancel: (reason) => void reasons.push(reason),
        }),
      );
    });
    const leaving = new AbortController();
    const reader = (await given(get("/", { signal: leaving.signal }))).body!.getReader();
    await reader.read();
    await reader.cancel("enough");
    leaving.abort();
    expect(charged).toEqual([{ status: 200, bytes: 1000 }]);
    expect(reasons).toEqual(["enough"]);
  });

  it("counts once what was sent when the source breaks, and passes its error on", async () => {
    const broken = new Error("broken");
    const breaking = rateLimit("9/h", { ip, charge: (_request, sent) => void charged.push(sent) })(
      () =>
        new Response(
          new ReadableStream<Uint8Array>(
            {
              pull: (controller) =>
                charged.length === 0 && !started++ ? controller.enqueue(new Uint8Array(10)) : controller.error(broken),
            },
            { highWaterMark: 0 },
          ),
        ),
    );
    let started = 0;
    const reader = (await breaking(get())).body!.getReader();
    expect((await reader.read()).value).toHaveLength(10);
    await expect(reader.read()).rejects.toBe(broken);
    expect(charged).toEqual([{ status: 200, bytes: 10 }]);
  });

  it("counts once when the client leaves and reading stops", async () => {
    const leaving = new AbortController();
    const answer = await limited(get("/endless", { signal: leaving.signal }));
    await answer.body!.getReader().read();
    leaving.abort();
    await expect.poll(() => charged, soon).toEqual([{ status: 200, bytes: 1000 }]);
  });

  it("does not take it for success when the client leaves before there is an answer", async () => {
    const leaving = new AbortController();
    const answering = limited(get("/stream", { signal: leaving.signal }));
    leaving.abort();
    await answering;
    expect(charged).toEqual([{ status: 499, bytes: 0 }]);
  });

  it("counts nothing of a HEAD request's body, which is never read", async () => {
    await limited(get("/stream", { method: "HEAD" }));
    expect(charged).toEqual([{ status: 200, bytes: 0 }]);
  });

  it("counts a handler that throws as a failure, and lets its error through", async () => {
    await expect(limited(get("/broken"))).rejects.toThrow("broken");
    const throwing = rateLimit("9/h", { ip, charge: (_request, sent) => void charged.push(sent) })((): Response => {
      throw new Error("at once");
    });
    expect(() => throwing(get())).toThrow("at once");
    expect(charged).toEqual([
      { status: 500, bytes: 0 },
      { status: 500, bytes: 0 },
    ]);
  });

  it("keeps the runtime awake until an answer has been charged", async () => {
    const { limiter } = limit("1000/h").by("ip");
    interface Worker {
      waitUntil(promise: Promise<unknown>): void;
    }
    const waitedFor: Promise<unknown>[] = [];
    const worker = { waitUntil: (promise: Promise<unknown>) => void waitedFor.push(promise) };
    const handler = rateLimit(limiter, {
      ip,
      charge: async (_request, { bytes }) => bytes,
      waitUntil: (settled, _request, _env: object, context: Worker) => context.waitUntil(settled),
    })(handle);
    const answer = await handler(get("/stream"), {}, worker);
    expect(waitedFor).toHaveLength(1);
    const left = async (): Promise<unknown> => (await limiter.peek({ dimensions: { ip: ip() } })).remaining;
    expect(await left()).toBe(999);
    await answer.arrayBuffer();
    await waitedFor[0];
    expect(await left()).toBe(0);
  });

  it("charges a client that leaves in the middle once, over HTTP", async () => {
    const app = await listen("9/h", { charge: (_request, sent) => void charged.push(sent) });
    running.push(app);
    await leaveDuringAnswer(`${app.url}/endless`);
    await expect.poll(() => charged, soon).toEqual([{ status: 200, bytes: 1000 }]);
    await ask(`${app.url}/hello`);
    await expect
      .poll(() => charged, soon)
      .toEqual([
        { status: 200, bytes: 1000 },
        { status: 200, bytes: 5 },
      ]);
  });
});
