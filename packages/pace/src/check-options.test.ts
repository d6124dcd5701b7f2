import { SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import { createFetch } from "./fetch/create-fetch.ts";
import { createInterceptor as createGrpcInterceptor } from "./grpc/create-interceptor.ts";
import { pace } from "./pacing/pace.ts";
import { RetryBudget } from "./retry/retry-budget.ts";
import { createInterceptor } from "./undici/create-interceptor.ts";

const paced = (options: never): unknown => pace("1/s", options);
const budget = (options: never): unknown => new RetryBudget(options);

describe("options that do not exist", () => {
  it.each([
    [paced, { concurency: 2 }, /^concurency is not an option of pace; did you mean concurrency\?$/],
    [paced, { maxConcurrent: 2 }, /^maxConcurrent is not .* did you mean concurrency\?$/],
    [paced, { limit: "1/s" }, /^limit is not .* the limit comes first: pace\("10\/s", options\)$/],
    [createFetch, { retries: 5 }, /^retries is not an option of createFetch; did you mean maxAttempts\?/],
    [createFetch, { pace: { concurency: 5 } }, /^concurency is not an option of pace; did you mean concurrency\?$/],
    [createFetch, { budget: { perSecond: 5 } }, /^perSecond is not an option of budget; /],
    [createInterceptor, { repeatble: () => true }, /^repeatble is not .* did you mean repeatable\?$/],
    [createGrpcInterceptor, { statuses: [14] }, /^statuses is not an option of createInterceptor; /],
    [budget, { perMinutes: 1 }, /did you mean perMinute\?$/],
  ])("%o refuses %j", (call: (options: never) => unknown, options, message) => {
    expect(() => call(options as never)).toThrow(message);
    expect(() => call(options as never)).toThrow(SluiceError);
  });

  it("are distinguished from a limit in the wrong place", () => {
    expect(() => pace({ concurrency: 2 } as never)).toThrow(/^limit must be a string .*; options come second/);
    expect(() => pace({ limit: 1, per: "1s" } as never)).toThrow(/^limit must be a string/);
    expect(() => pace(undefined, { concurrency: undefined, nonsense: undefined } as never)).not.toThrow();
  });
});
