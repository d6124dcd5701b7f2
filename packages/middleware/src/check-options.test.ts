import { createLimiter, limit, SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import { rateLimit as express } from "./express.ts";
import { rateLimit as fastify, limitRoute } from "./fastify.ts";
import { rateLimit as fetch } from "./fetch.ts";
import { rateLimit as grpc } from "./grpc.ts";
import { rateLimit as hono } from "./hono.ts";
import { rateLimit as http } from "./http.ts";
import { rateLimit as koa } from "./koa.ts";
import { RateLimit, RateLimitModule } from "./nest/index.ts";
import { rateLimit as next, rateLimitProxy } from "./next.ts";
import { rateLimit as trpc } from "./trpc.ts";

/** As an app in plain JavaScript calls it: no compiler has looked at the arguments. */
type Unchecked = (limits?: unknown, options?: object) => unknown;

const ip = (): string => "192.0.2.1";
const adapters: readonly (readonly [string, Unchecked])[] = [
  ["express", express as Unchecked],
  ["fastify", fastify as Unchecked],
  ["fastify's limitRoute", limitRoute as Unchecked],
  ["hono", hono as Unchecked],
  ["koa", koa as Unchecked],
  ["http", http as Unchecked],
  ["trpc", trpc as Unchecked],
  ["grpc", grpc as Unchecked],
  ["fetch", (limits, options) => (fetch as Unchecked)(limits, { ip, ...options })],
  ["next", (limits, options) => (next as Unchecked)(limits, { ip, ...options })],
  ["next's proxy", (limits, options) => (rateLimitProxy as Unchecked)(limits, { ip, ...options })],
  ["nest", (limits, options) => RateLimitModule.forRoot(limits as never, options)],
];

describe.each(adapters)("nonsense given to %s", (_, rateLimit) => {
  const refused = (limits: unknown, options: object | undefined, message: RegExp): void => {
    expect(() => rateLimit(limits, options)).toThrow(message);
    expect(() => rateLimit(limits, options)).toThrow(SluiceError);
  };

  it("is refused if the limits are not limits, with the right call", () => {
    refused({ windowMs: 900_000, limit: 100 }, undefined, /^the limits must be a string: rateLimit\("100\/15m"\)/);
    refused({ windowMs: 60_000, max: 5 }, undefined, /"5\/1m".*@sluice\/middleware\/express-rate-limit/);
    refused({ max: 100, timeWindow: "1 minute" }, undefined, /rateLimit\("100\/15m"\)/);
    refused(
      limit("2/m"),
      undefined,
      /^the limits do not say what they count by; add by, .*limit\("100\/m"\)\.by\("ip"\)/,
    );
    refused("10/x", undefined, /windows: /);
    refused(undefined, undefined, /^the limits must be a string such as "100\/m", .* but are missing/);
    refused(100, undefined, /^the limits must be a string such as "100\/m"/);
    refused({}, undefined, /^the limits are empty/);
    refused({ policis: {} }, undefined, /^policis is not an option of createLimiter; did you mean policies\?/);
    refused({ check: () => true }, undefined, /^the limits must be a limiter.* has no method charge/);
    refused({ limiter: "api" }, undefined, /^the limits must be a limiter/);
  });

  it("is refused if options do not exist, with the one that was meant", () => {
    refused("1/s", { dimension: {} }, /^dimension is not an option of rateLimit; did you mean dimensions\?$/);
    refused("1/s", { windowMs: 1000 }, /^windowMs is not an option .* the limits come first, as text/);
    refused("1/s", { keyGenerator: ip }, /^keyGenerator is not an option .* dimensions: \{ user: /);
    refused("1/s", { skipSuccessfulRequests: true }, /giveBack: \(request, \{ status \}\) => …$/);
    refused("1/s", { standardHeaders: true, legacyHeaders: false }, /standardHeaders .*; legacyHeaders .* headers: /);
    refused(
      limit("1/s").by("ip"),
      { onFailure: "close" },
      /^onFailure must be one of open, closed, local, but is "close"$/,
    );
    refused(
      "1/s",
      { onDecision: "log", policies: "api" },
      /^policies must be a list of policy ids.*; onDecision must be a function/,
    );
    refused(
      "1/s",
      { dimensions: { user: "ada" } },
      /^dimensions\.user must be a function, as in \(request\) => request\.user$/,
    );
    refused("1/s", { counters: "redis://127.0.0.1" }, /^counters must be a counter store/);
  });

  it("is not what works: text, a list, a limit, a limiter, policies", () => {
    const policies = { policies: [{ id: "api", limits: [{ by: "ip", windows: "1/s" }], on_failure: "open" }] };
    for (const limits of ["1/s", ["1/s", "5/m"], limit("1/s").by("ip"), createLimiter({ policies }), { policies }])
      expect(() => rateLimit(limits)).not.toThrow();
  });
});

describe("options that only one adapter has", () => {
  it("are checked, and suggested there", () => {
    const wrong = (rateLimit: unknown, options: object) => () => (rateLimit as Unchecked)("1/s", options);
    expect(wrong(hono, { peer: "192.0.2.1" })).toThrow(/^peer must be a function/);
    expect(wrong(hono, { pear: ip })).toThrow(/did you mean peer\?$/);
    expect(wrong(express, { peer: ip })).toThrow(/^peer is not an option/);
    expect(wrong(fetch, { ip, waitUntill: ip })).toThrow(/did you mean waitUntil\?$/);
    expect(wrong(trpc, { response: true })).toThrow(/^response must be a function/);
    expect(wrong(grpc, { refuse: "no" })).toThrow(/^refuse must be a function/);
    expect(wrong(RateLimitModule.forRoot, { everywere: false })).toThrow(/did you mean everywhere\?$/);
  });

  it("refuses what Nest's decorator and its async module do not take", async () => {
    const decorate = RateLimit as Unchecked;
    expect(() => decorate(limit("5/m"))).toThrow(/do not say what they count by/);
    expect(() => decorate({ ttl: 60_000, limit: 5 })).toThrow(/^ttl is not an option/);
    expect(() => decorate(undefined)).toThrow(/^the limits must be a string/);
    const forRootAsync = RateLimitModule.forRootAsync as (options: object) => never;
    expect(() => forRootAsync({ useClass: class {} })).toThrow(/useFactory: \(\) => \(\{ limits: "100\/m" \}\)/);
    expect(() => forRootAsync({})).toThrow(/^useFactory is required/);
  });

  it("says how to use a Fastify plugin and middleware that were not called", () => {
    expect(() => (fastify as Unchecked)({ addHook: ip })).toThrow(/app\.register\(rateLimit\("100\/m"\)\)/);
    expect(() => (express as Unchecked)(new Request("https://example.com"))).toThrow(/class Request; .*app\.use\(/);
  });
});
