import { type HttpAnswer, startHttpServer, type TestHttpServer } from "@sluice/test-servers";
import { afterEach, describe, expect, it } from "vitest";
import type { SentQuestion } from "../exchange.ts";
import { parseAddresses } from "../parse-addresses.ts";
import { HttpExchange } from "./http-exchange.ts";

let server: TestHttpServer | undefined;
let exchange: HttpExchange | undefined;
afterEach(async () => {
  exchange?.close();
  await server?.close();
});

async function setUp(answer: HttpAnswer, basePath = "") {
  const started = await startHttpServer(answer);
  server = started;
  const ends: string[] = [];
  const [address] = parseAddresses(`${started.url}${basePath}`, ["http"]);
  const made = new HttpExchange(address!, {}, { onEnd: (why) => ends.push(why) });
  exchange = made;
  return { exchange: made, seen: started.seen, ends };
}

const checks = (...users: readonly string[]): readonly SentQuestion[] =>
  users.map((user) => ({ question: { kind: "check", request: { dimensions: { user } } }, withinMs: 50 }));

const answering =
  (status: number, body: unknown): HttpAnswer =>
  (_request, response) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };

const decision = { allowed: true, reason: "within_limits", cost: 1, remaining: 7 };

describe("checks over HTTP", () => {
  it("travel in one request, and a lone one alone", async () => {
    const { exchange, seen } = await setUp((request, response, number) =>
      answering(
        200,
        number === 1
          ? decision
          : {
              answers: [
                { status: 200, decision },
                { status: 429, decision },
              ],
            },
      )(request, response, number),
    );
    expect(await exchange.send("check", checks("a")).replies).toMatchObject([{ value: { remaining: 7 } }]);
    expect(await exchange.send("check", checks("b", "c")).replies).toHaveLength(2);
    expect(seen.map(({ url, body }) => [url, JSON.parse(body)])).toEqual([
      ["/v1/check", { dimensions: { user: "a" }, deadline_ms: 50 }],
      [
        "/v1/check",
        {
          checks: [
            { dimensions: { user: "b" }, deadline_ms: 50 },
            { dimensions: { user: "c" }, deadline_ms: 50 },
          ],
        },
      ],
    ]);
    expect(new Set(seen.map(({ port }) => port)).size).toBe(1);
  });

  it("go below the path of the address", async () => {
    const { exchange, seen } = await setUp(answering(200, decision), "/limits/");
    await exchange.send("check", checks("a")).replies;
    expect(seen[0]!.url).toBe("/limits/v1/check");
  });

  it.each([
    ["from a proxy whose server did not answer", 502, "<html>", "lost"],
    ["that is not an answer at all", 200, "hello", "lost"],
    ["of a batch that is not one", 200, { answers: 5 }, "lost"],
    ["for an internal error", 500, { code: "internal", detail: "oops" }, "lost"],
    ["from another server", 302, "<html>", "lost"],
  ] as const)("may have been decided with an answer %s", async (_, code, body, because) => {
    const { exchange, ends } = await setUp(answering(code, body));
    await expect(exchange.send("check", checks("a", "b")).replies).rejects.toMatchObject({ because });
    expect(ends).toEqual([]);
  });

  it.each([
    ["is stopping", 503, { code: "not_ready", detail: "stopping" }, { kind: "elsewhere" }],
    ["is overloaded", 503, { code: "overloaded", detail: "later" }, { reason: "storage_overloaded" }],
    ["does not accept the token", 401, { code: "unauthenticated", detail: "who?" }, { kind: "refused" }],
  ] as const)("each get that answer from a server that %s", async (_, code, body, reply) => {
    const { exchange, ends } = await setUp(answering(code, body));
    expect(await exchange.send("check", checks("a", "b")).replies).toMatchObject([reply, reply]);
    expect(await exchange.send("check", checks("a")).replies).toMatchObject([reply]);
    expect(ends).toEqual([]);
  });

  it("may have been decided if the connection breaks", async () => {
    const { exchange, ends } = await setUp((request) => void request.socket.destroy());
    await expect(exchange.send("check", checks("a")).replies).rejects.toMatchObject({ because: "lost" });
    expect(ends).toHaveLength(1);
  });

  it("may have been decided if the answer is cut short", async () => {
    const { exchange } = await setUp((request, response) => {
      response.writeHead(200, { "content-length": "1000" });
      response.write("{", () => request.socket.destroy());
    });
    await expect(exchange.send("check", checks("a")).replies).rejects.toMatchObject({ because: "lost" });
  });

  it("may have been decided if the answer is endless", async () => {
    const { exchange } = await setUp((_request, response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(1024 * 1024, " ");
      const write = (): void => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on("drain", write);
      response.on("error", () => undefined);
      write();
    });
    await expect(exchange.send("check", checks("a")).replies).rejects.toMatchObject({
      because: "lost",
      message: "the answer is too long",
    });
  });

  it("were not carried out if no server listens", async () => {
    const { exchange, ends } = await setUp(() => undefined);
    await server?.close();
    await expect(exchange.send("check", checks("a")).replies).rejects.toMatchObject({ because: "not_asked" });
    expect(ends).toEqual(["ECONNREFUSED"]);
  });

  it("whose answer is not needed release their connection", async () => {
    let left = false;
    const { exchange, ends } = await setUp((request) => {
      request.socket.on("close", () => {
        left = true;
      });
    });
    const sending = exchange.send("check", checks("a"));
    sending.replies.catch(() => undefined);
    await expect.poll(() => server?.seen.length, { timeout: 30_000, interval: 5 }).toBe(1);
    sending.abandon();
    await expect.poll(() => left, { timeout: 30_000, interval: 5 }).toBe(true);
    expect(ends).toEqual([]);
  });
});

describe("a server that closes connections after its answers", () => {
  const closing =
    (ready: HttpAnswer): HttpAnswer =>
    (request, response, number) => {
      response.setHeader("connection", "close");
      (request.url === "/readyz" ? ready : answering(200, decision))(request, response, number);
    };

  it("is left before it is gone, if it is stopping", async () => {
    const { exchange, ends } = await setUp(closing(answering(503, { status: "stopping" })));
    // A probe may find no answer in its 100 ms, and the next answered check starts another.
    const reasonAfterCheck = async (): Promise<string | undefined> => {
      await exchange.send("check", checks("a")).replies;
      return ends[0];
    };
    await expect.poll(reasonAfterCheck, { timeout: 30_000, interval: 5 }).toBe("it is stopping");
  });

  it("is asked about that occasionally, and still gets everything else", async () => {
    const { exchange, seen, ends } = await setUp(closing(answering(200, { status: "ready" })));
    for (let i = 0; i < 20; i++) await exchange.send("check", checks("a")).replies;
    const looks = (): number => seen.filter(({ url }) => url === "/readyz").length;
    await expect.poll(looks, { timeout: 30_000, interval: 5 }).toBeGreaterThan(0);
    expect(looks()).toBeLessThan(20);
    expect(ends).toEqual([]);
  });
});

describe("opening", () => {
  it("starts with a new connection, and failures of old ones are not reported", async () => {
    const { exchange, seen, ends } = await setUp((request, response, number) => {
      if (request.url === "/readyz") answering(200, {})(request, response, number);
      else if (number < 4) answering(200, decision)(request, response, number);
    });
    await Promise.all([exchange.send("check", checks("a")).replies, exchange.send("check", checks("b")).replies]);
    const asked = exchange.send("check", checks("c")).replies;
    await asked;
    const held = exchange.send("check", checks("held"));
    const failed = expect(held.replies).rejects.toMatchObject({ because: "lost" });
    await expect.poll(() => seen.length, { timeout: 30_000, interval: 5 }).toBe(4);
    await exchange.open(15_000);
    expect(seen.slice(0, 4).map(({ port }) => port)).not.toContain(seen[4]!.port);
    server?.cut(seen[3]!.port!);
    await failed;
    expect(ends).toEqual([]);
  });

  it.each([
    [200, { status: "ready" }, true],
    [503, { status: "unready" }, true],
    [503, { status: "stopping" }, false],
    [404, "not here", true],
    [502, "<html>", false],
  ])("checks whether the server is up: %i %j", async (code, body, opens) => {
    const { exchange, seen } = await setUp(answering(code, body));
    const opened = await exchange.open(15_000).then(
      () => true,
      () => false,
    );
    expect([opened, seen[0]!.method, seen[0]!.url]).toEqual([opens, "GET", "/readyz"]);
  });

  it("does not wait forever", async () => {
    const { exchange } = await setUp(() => undefined);
    await expect(exchange.open(20)).rejects.toThrow("no answer within 20 ms");
  });
});

describe("a question that is not a check", () => {
  it("travels in a separate request", async () => {
    const { exchange, seen } = await setUp((request, response, number) => {
      if (request.url === "/v1/give-back") answering(200, { given_back: true })(request, response, number);
      else if (request.url === "/v1/charge") answering(204, "")(request, response, number);
      else answering(403, { code: "permission_denied", detail: "no" })(request, response, number);
    });
    const request = { dimensions: { user: "a" }, cost: 3, id: "x" };
    const sent = (question: SentQuestion["question"]): SentQuestion => ({ question, withinMs: 50 });
    const charges = [sent({ kind: "charge", request }), sent({ kind: "charge", request })];
    for (const charge of charges)
      expect(await exchange.send("charge", [charge]).replies).toEqual([{ kind: "answer", value: undefined }]);
    expect(await exchange.send("give", [sent({ kind: "give", receipt: "r" })]).replies).toMatchObject([
      { value: true },
    ]);
    expect(await exchange.send("reset", [sent({ kind: "reset", request })]).replies).toMatchObject([
      { kind: "refused", error: { code: "permission_denied" } },
    ]);
    expect(seen.map(({ body }) => JSON.parse(body))).toEqual([
      { dimensions: { user: "a" }, cost: 3 },
      { dimensions: { user: "a" }, cost: 3 },
      { receipt: "r" },
      { dimensions: { user: "a" } },
    ]);
  });
});

describe("a lease over HTTP", () => {
  const lease: SentQuestion = {
    question: {
      kind: "lease",
      request: { dimensions: { user: "ada" }, policies: ["api"], cost: 3 },
      want: 40,
      settled: { epoch: 7, spent: 1, kept: 2, returned: 3 },
    },
    withinMs: 50,
  };
  const granted = { granted: 40, epoch: 8, unspent: 41, lease_ms: 5, stale_ms: 6, cost: 2, decision };

  it("is requested, and returned", async () => {
    const { exchange, seen } = await setUp(answering(200, granted));
    expect(await exchange.send("lease", [lease]).replies).toMatchObject([
      { kind: "answer", value: { granted: 40, epoch: 8, leaseMs: 5, staleMs: 6, cost: 2, decision: { remaining: 7 } } },
    ]);
    expect(seen.map(({ url, body }) => [url, JSON.parse(body)])).toEqual([
      [
        "/v1/lease",
        {
          check: { dimensions: { user: "ada" }, policies: ["api"] },
          want: 40,
          settled: { epoch: 7, spent: 1, kept: 2, returned: 3 },
        },
      ],
    ]);
  });

  it.each([
    ["a server without leases", 404, { code: "not_found", detail: "nothing here" }, "not_found"],
    ["a gateway without such a path", 404, "<html>", "not_found"],
    ["a gateway that blocks it", 403, "<html>", "not_found"],
    ["a server whose policies allow none", 409, { code: "not_leasable", detail: "exact" }, "not_leasable"],
  ])("is not available from %s", async (_, status, body, code) => {
    const { exchange, ends } = await setUp(answering(status, body));
    expect(await exchange.send("lease", [lease]).replies).toMatchObject([{ kind: "refused", error: { code } }]);
    expect(ends).toEqual([]);
  });

  it("takes no connection that checks need, however many are not answered", async () => {
    const { exchange } = await setUp((request, response, number) => {
      if (request.url !== "/v1/lease") answering(200, decision)(request, response, number);
    });
    for (let i = 0; i < exchange.maxInFlight; i++) exchange.send("lease", [lease]).replies.catch(() => undefined);
    expect(await exchange.send("check", checks("a")).replies).toMatchObject([{ kind: "answer" }]);
  });

  it("is requested again if a gateway says that it is overloaded at the moment", async () => {
    const { exchange } = await setUp(answering(429, "<html>"));
    expect(await exchange.send("lease", [lease]).replies).toMatchObject([{ kind: "elsewhere" }]);
  });

  it("may have been granted if the counters did not answer, which is not the server's fault", async () => {
    const { exchange } = await setUp(answering(503, { code: "store_unavailable", detail: "away" }));
    expect(await exchange.send("lease", [lease]).replies).toMatchObject([{ kind: "failed" }]);
  });

  it.each([
    [502, "<html>"],
    [408, "<html>"],
    [200, "hello"],
    [200, { ...granted, granted: -1 }],
    [200, { ...granted, lease_ms: "5" }],
    [200, { ...granted, decision: undefined }],
  ])("may have been granted if the answer is invalid: %i %j", async (status, body) => {
    const { exchange } = await setUp(answering(status, body));
    await expect(exchange.send("lease", [lease]).replies).rejects.toMatchObject({ because: "lost" });
  });
});
