import { createLimiter, ManualClock } from "sluice";
import { failingCounters } from "sluice/testing";
import { afterEach, describe, expect, it } from "vitest";
import { type StartedHttp, startHttp } from "../testing/start-http.ts";

const policies = { policies: [{ id: "tokens", limits: [{ by: ["key"], windows: ["100/h"] }], on_failure: "open" }] };
const dimensions = { key: "k" };

let server: StartedHttp | undefined;
afterEach(() => server?.close());

async function open(limiter = createLimiter({ policies, clock: new ManualClock() })) {
  server = await startHttp(limiter);
  const { url } = server;
  return async (path: string, body: unknown) => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Record<string, never>,
    };
  };
}

describe("holds over HTTP", () => {
  it("are reserved, reported about, extended and settled", async () => {
    const clock = new ManualClock();
    const post = await open(createLimiter({ policies, clock }));
    const { status, headers, body } = await post("/v1/reserve", { dimensions, amount: 60, ttl_ms: 5000 });
    expect([status, headers.get("x-ratelimit-remaining")]).toEqual([200, "40"]);
    expect(body).toMatchObject({ amount: 60, expires_at_ms: clock.epochMs() + 5000, decision: { cost: 60 } });
    const { id } = body;
    expect(await post("/v1/commit", { id, actual: 20, last: false })).toMatchObject({ body: { state: "held" } });
    expect(await post("/v1/extend", { id, ttl_ms: 9000 })).toMatchObject({
      body: { state: "held", expires_at_ms: clock.epochMs() + 9000 },
    });
    expect((await post("/v1/commit", { id, actual: 70 })).body).toEqual({
      state: "settled",
      amount: 60,
      actual: 70,
      overdraft: 10,
      expired: false,
      expires_at_ms: clock.epochMs() + 9000,
      replayed: false,
    });
    expect(await post("/v1/cancel", { id })).toMatchObject({ body: { state: "settled", actual: 70, replayed: true } });
    expect(await post("/v1/check", { dimensions, preview: true })).toMatchObject({ body: { remaining: 30 } });
  });

  it("are cut if they are estimates, and denied like checks if not", async () => {
    const post = await open();
    expect(await post("/v1/reserve", { dimensions, amount: 101 })).toMatchObject({
      status: 429,
      body: { reason: "never_fits", cost: 101 },
    });
    expect(await post("/v1/reserve", { dimensions, estimate: 4000 })).toMatchObject({
      status: 200,
      body: { amount: 100 },
    });
    const denied = await post("/v1/reserve", { dimensions, estimate: 4000 });
    expect([denied.status, denied.body.reason, denied.headers.has("retry-after")]).toEqual([429, "over_limit", true]);
  });

  it("are reserved once for an id", async () => {
    const post = await open();
    const first = await post("/v1/reserve", { dimensions, amount: 60, id: "chat-1" });
    const again = await post("/v1/reserve", { dimensions, amount: 60, id: "chat-1" });
    expect(again.body).toMatchObject({ id: first.body.id, expires_at_ms: first.body.expires_at_ms });
    expect(again.body.decision).toMatchObject({ allowed: true, replayed: true });
    expect(await post("/v1/reserve", { dimensions, amount: 61, id: "chat-1" })).toMatchObject({ status: 422 });
  });

  it("that are not known are said to be so", async () => {
    const post = await open();
    expect((await post("/v1/commit", { id: "h1", actual: 5 })).body).toEqual({
      state: "unknown",
      amount: 0,
      actual: 0,
      overdraft: 0,
      expired: false,
      replayed: false,
    });
  });

  it("are refused by name where counters keep none", async () => {
    const post = await open(createLimiter({ policies, counters: failingCounters() }));
    expect(await post("/v1/reserve", { dimensions, amount: 5 })).toMatchObject({
      status: 409,
      body: { code: "not_holdable" },
    });
  });

  it.each([
    ["/v1/reserve", { amount: 0 }, "amount"],
    ["/v1/reserve", { amount: 1, estimate: 1 }, "estimate"],
    ["/v1/reserve", { preview: true }, "preview"],
    ["/v1/commit", { id: "h1" }, "actual"],
    ["/v1/extend", { id: "h1", ttl_ms: 1e9 }, "ttl_ms"],
    ["/v1/cancel", {}, "id"],
  ])("refuse to %s %j", async (path, body, field) => {
    const post = await open();
    const answer = await post(path, body);
    expect(answer.status).toBe(400);
    expect(JSON.stringify(answer.body)).toContain(field);
  });
});
