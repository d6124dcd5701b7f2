import { describe, expect, it } from "vitest";
import { readRateLimit } from "./read-rate-limit.ts";

const nowMs = Date.UTC(2026, 2, 1, 12, 0, 0);
const nowS = nowMs / 1000;
const maxMs = 2_147_483_647_000;

const read = (headers: Record<string, unknown>): ReturnType<typeof readRateLimit> => readRateLimit(headers, { nowMs });

describe("the forms of headers", () => {
  const expected = { limits: [{ limit: 10, remaining: 3, resetAfterMs: 5000 }], retryAfterMs: 5000 };

  it.each([
    [
      "a Headers",
      new Headers({ "Retry-After": "5", "RateLimit-Limit": "10", "RateLimit-Remaining": "3", "RateLimit-Reset": "5" }),
    ],
    ["a record", { "Retry-After": "5", "ratelimit-limit": ["10"], "RATELIMIT-Remaining": "3", "RateLimit-Reset": 5 }],
    ["raw headers", ["Retry-After", "5", "RateLimit-Limit", "10", "RateLimit-Remaining", "3", "RateLimit-Reset", "5"]],
    [
      "raw bytes",
      ["Retry-After", "5", "RateLimit-Limit", "10", "RateLimit-Remaining", "3", "RateLimit-Reset", "5"].map((text) =>
        Buffer.from(text),
      ),
    ],
    [
      "pairs",
      [
        ...new Headers({
          "Retry-After": "5",
          "RateLimit-Limit": "10",
          "RateLimit-Remaining": "3",
          "RateLimit-Reset": "5",
        }),
      ],
    ],
    [
      "a Map",
      new Map([
        ["retry-after", "5"],
        ["ratelimit-limit", "10"],
        ["ratelimit-remaining", "3"],
        ["ratelimit-reset", "5"],
      ]),
    ],
  ])("are all read: %s", (_, headers) => {
    expect(readRateLimit(headers, { nowMs })).toEqual(expected);
  });

  it("may have several fields of a name, which are one list", () => {
    const policy = { "RateLimit-Policy": ['"a";q=1', '"b";q=2'], RateLimit: '"a";r=0' };
    expect(read(policy).limits.map(({ name }) => name)).toEqual(["a", "b"]);
  });

  it.each([null, undefined, 5, "x", [], [1], {}, { "retry-after": null }, { "x-ratelimit-limit": Symbol("x") }])(
    "may be anything at all: %s",
    (headers) => {
      expect(readRateLimit(headers as never, { nowMs }).limits).toEqual([]);
    },
  );

  it("may throw when they are read", () => {
    const hostile = {
      get "retry-after"(): string {
        throw new Error("hostile");
      },
    };
    expect(readRateLimit(hostile, { nowMs })).toEqual({ limits: [] });
  });
});

describe("Retry-After", () => {
  it.each([
    ["120", 120_000],
    ["0", 0],
    [" 7 ", 7000],
    ["1.5", 1500],
    ["0.0001", 1],
    ["Sun, 01 Mar 2026 12:00:30 GMT", 30_000],
    ["Sunday, 01-Mar-26 12:00:30 GMT", 30_000],
    ["Sun Mar  1 12:00:30 2026", 30_000],
    ["Sun, 01 Mar 2026 11:00:00 GMT", 0],
    ["5, 10", 10_000],
    ["99999999999999999999", maxMs],
  ])("of %s is read", (text, retryAfterMs) => {
    expect(read({ "Retry-After": text })).toEqual({ limits: [], retryAfterMs });
  });

  it.each([
    "",
    "-1",
    "soon",
    "1e3",
    "0x10",
    "5s",
    "Sun, 31 Feb 2026 12:00:30 GMT",
    "Sun, 01 Foo 2026 12:00:30 GMT",
    "Sun, 01 Mar 2026 25:00:30 GMT",
    "5 10",
    "5,",
  ])("of %j is malformed", (text) => {
    expect(read({ "Retry-After": text })).toEqual({ limits: [] });
  });

  it("of several values is the longest, and never made earlier", () => {
    expect(read({ "Retry-After": ["5", "60"], RateLimit: '"a";r=0;t=1' }).retryAfterMs).toBe(60_000);
  });

  it("counts before milliseconds of any other name, which count without it", () => {
    expect(read({ "Retry-After": "1", "Retry-After-Ms": "350" }).retryAfterMs).toBe(1000);
    expect(read({ "Retry-After-Ms": "350" }).retryAfterMs).toBe(350);
    expect(read({ "x-ms-retry-after-ms": "350.2" }).retryAfterMs).toBe(351);
    expect(read({ "Retry-After": "?", "x-ms-retry-after-ms": "350" }).retryAfterMs).toBe(350);
  });

  it("follows the server's clock if this one is wrong", () => {
    const date = "Sun, 01 Mar 2026 13:00:00 GMT";
    expect(read({ "Retry-After": "Sun, 01 Mar 2026 13:00:30 GMT", Date: date }).retryAfterMs).toBe(30_000);
    expect(
      read({ "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": `${nowS + 3660}`, Date: date }).limits[0]?.resetAfterMs,
    ).toBe(60_000);
  });

  it("follows this clock if both agree within the precision of a Date", () => {
    const date = "Sun, 01 Mar 2026 11:59:58 GMT";
    expect(read({ "Retry-After": "Sun, 01 Mar 2026 12:00:30 GMT", Date: date }).retryAfterMs).toBe(30_000);
  });
});

describe("drafts 8 to 11", () => {
  it("are joined by name, whatever their order and parameters", () => {
    const headers = {
      "RateLimit-Policy":
        '"burst";w=60;q=100, "daily"; q=1000; pk=:YQ==:;w=86400;new="x", "up";q=65535;qu="content-bytes"',
      RateLimit: '"daily";t=30;r=7, "burst";r=50',
    };
    expect(read(headers).limits).toEqual([
      { name: "burst", limit: 100, windowMs: 60_000, remaining: 50 },
      { name: "daily", limit: 1000, windowMs: 86_400_000, remaining: 7, resetAfterMs: 30_000 },
      { name: "up", limit: 65_535, unit: "content-bytes" },
    ]);
  });

  it("may have tokens for names, and escapes in strings", () => {
    expect(read({ RateLimit: 'default;r=1;t=2, "a\\"\\\\";r=3' }).limits).toEqual([
      { name: "default", remaining: 1, resetAfterMs: 2000 },
      { name: 'a"\\', remaining: 3 },
    ]);
  });

  it("count before older generations in the same answer", () => {
    const headers = {
      "X-RateLimit-Limit": "9",
      "X-RateLimit-Remaining": "8",
      "RateLimit-Remaining": "7",
      RateLimit: '"a";r=6',
    };
    expect(read(headers).limits).toEqual([{ name: "a", remaining: 6 }]);
  });

  it("yield to older generations if they do not report a remainder", () => {
    const headers = { "RateLimit-Policy": '"a";q=9', "X-RateLimit-Limit": "9", "X-RateLimit-Remaining": "8" };
    expect(read(headers).limits).toEqual([{ limit: 9, remaining: 8 }]);
    expect(read({ "RateLimit-Policy": '"a";q=9' }).limits).toEqual([{ name: "a", limit: 9 }]);
  });

  it("are ignored as a whole if malformed", () => {
    expect(read({ RateLimit: '"a";r=1, "b";r=', "RateLimit-Policy": '"a";q=1' }).limits).toEqual([
      { name: "a", limit: 1 },
    ]);
    expect(read({ RateLimit: '"a";r=1', "RateLimit-Policy": '"a";q=1;' }).limits).toEqual([
      { name: "a", remaining: 1 },
    ]);
  });

  it("are ignored member by member if numbers are missing or absurd", () => {
    expect(read({ RateLimit: '"a";t=1, "b";r=-1, "c";r=1.5, "d";r="1", (e);r=1, 5;r=1, "f";r=1' }).limits).toEqual([
      { name: "f", remaining: 1 },
    ]);
    expect(read({ RateLimit: '"a";r=1;t=999999999999999' }).limits[0]?.resetAfterMs).toBe(maxMs);
  });

  it("are bounded in number", () => {
    const many = Array.from({ length: 200 }, (_, index) => `"n${index}";r=1`).join(",");
    expect(read({ RateLimit: many }).limits).toHaveLength(32);
  });
});

describe("draft 7", () => {
  it("is read, with the window of the policy that has its limit", () => {
    const headers = { RateLimit: "limit=100, remaining=50, reset=5", "RateLimit-Policy": "1000;w=3600, 100;w=60" };
    expect(read(headers).limits).toEqual([
      { limit: 100, remaining: 50, resetAfterMs: 5000, windowMs: 60_000 },
      { limit: 1000, windowMs: 3_600_000 },
    ]);
  });

  it("does not guess between policies of the same limit", () => {
    const headers = { RateLimit: "limit=100, remaining=50", "RateLimit-Policy": "100;w=1, 100;w=60" };
    expect(read(headers).limits[0]).toEqual({ limit: 100, remaining: 50 });
  });
});

describe("fields of one number each", () => {
  it.each([
    ["to draft 6", "RateLimit"],
    ["legacy", "X-RateLimit"],
    ["with another hyphen", "X-Rate-Limit"],
    ["of a vendor", "Acme-RateLimit"],
  ])("are read: %s", (_, prefix) => {
    const headers = { [`${prefix}-Limit`]: "100", [`${prefix}-Remaining`]: "50", [`${prefix}-Reset`]: "30" };
    expect(read(headers).limits).toEqual([{ limit: 100, remaining: 50, resetAfterMs: 30_000 }]);
  });

  it.each([
    ["seconds from now", "30", 30_000],
    ["a fraction of them", "0.5", 500],
    ["a day of them", "86400", 86_400_000],
    ["ten years of them", "315360000", 315_360_000_000],
    ["epoch seconds", `${nowS + 30}`, 30_000],
    ["epoch seconds with a fraction", `${nowS + 30}.5`, 30_500],
    ["epoch milliseconds", `${nowMs + 30_000}`, 30_000],
    ["epoch seconds that have passed", `${nowS - 30}`, 0],
    ["epoch milliseconds that have passed", `${nowMs - 30}`, 0],
    ["minutes and seconds", "6m0s", 360_000],
    ["milliseconds", "20ms", 20],
    ["microseconds", "1500µs", 2],
    ["all units", "1d1h1m1.5s", 90_061_500],
    ["a date of HTTP", "Sun, 01 Mar 2026 12:00:30 GMT", 30_000],
    ["a date of RFC 3339", "2026-03-01T12:00:30Z", 30_000],
    ["one with an offset", "2026-03-01T13:00:30.250+01:00", 30_250],
  ])("have a reset as %s", (_, reset, resetAfterMs) => {
    expect(read({ "X-RateLimit-Reset": reset }).limits).toEqual([{ resetAfterMs }]);
  });

  it.each([
    "-5",
    "never",
    "",
    "9".repeat(40),
    `${nowMs * 1000}`,
    "5000000000000",
    "1e9",
    "NaN",
    "5 s",
    "2026-13-01T00:00:00Z",
  ])("have no reset as %s", (reset) => {
    expect(read({ "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": reset }).limits).toEqual([{ remaining: 1 }]);
  });

  it("read seconds as seconds on a machine whose clock was never set", () => {
    expect(readRateLimit({ "X-RateLimit-Reset": "30" }, { nowMs: 0 }).limits).toEqual([{ resetAfterMs: 30_000 }]);
  });

  it("may have policies and parameters after their numbers", () => {
    expect(read({ "RateLimit-Limit": "10, 10;w=1;burst=20, 50;w=60", "RateLimit-Remaining": "3" }).limits).toEqual([
      { limit: 10, remaining: 3, windowMs: 1000 },
    ]);
    expect(read({ "RateLimit-Limit": "100;w=21600", "RateLimit-Remaining": "76;w=21600" }).limits).toEqual([
      { limit: 100, remaining: 76, windowMs: 21_600_000 },
    ]);
  });

  it("may describe requests and tokens", () => {
    const headers = {
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-limit-tokens": "150000",
      "x-ratelimit-remaining-requests": "59",
      "x-ratelimit-remaining-tokens": "149984",
      "x-ratelimit-reset-requests": "1s",
      "x-ratelimit-reset-tokens": "6m0s",
    };
    expect(read(headers).limits).toEqual([
      { name: "requests", limit: 60, remaining: 59, resetAfterMs: 1000 },
      { name: "tokens", limit: 150_000, remaining: 149_984, resetAfterMs: 360_000, unit: "tokens" },
    ]);
  });

  it("may have the name of the limit first", () => {
    const headers = {
      "anthropic-ratelimit-requests-limit": "50",
      "anthropic-ratelimit-requests-remaining": "49",
      "anthropic-ratelimit-requests-reset": "2026-03-01T12:00:02Z",
    };
    expect(read(headers).limits).toEqual([{ name: "requests", limit: 50, remaining: 49, resetAfterMs: 2000 }]);
  });

  it("may state the window in their names", () => {
    expect(read({ "X-RateLimit-Limit-Minute": "20", "X-RateLimit-Remaining-Minute": "19" }).limits).toEqual([
      { name: "minute", limit: 20, remaining: 19, windowMs: 60_000 },
    ]);
  });

  it("may name the resource", () => {
    const headers = {
      "x-ratelimit-limit": "5000",
      "x-ratelimit-remaining": "4999",
      "x-ratelimit-used": "1",
      "x-ratelimit-resource": "core",
    };
    expect(read(headers).limits).toEqual([{ name: "core", limit: 5000, remaining: 4999 }]);
  });

  it("prefer Reset-After, in either order", () => {
    const headers = {
      "X-RateLimit-Remaining": "0",
      "X-RateLimit-Reset-After": "1.5",
      "X-RateLimit-Reset": `${nowS + 99}`,
    };
    expect(read(headers).limits).toEqual([{ remaining: 0, resetAfterMs: 1500 }]);
    expect(read(Object.fromEntries(Object.entries(headers).reverse())).limits).toEqual([
      { remaining: 0, resetAfterMs: 1500 },
    ]);
  });

  it("mean unlimited by a limit below zero, and used up by a remainder below zero", () => {
    expect(read({ "X-RateLimit-Limit": "-1", "X-RateLimit-Remaining": "-1" }).limits).toEqual([]);
    expect(read({ "X-RateLimit-Remaining": "-1" }).limits).toEqual([]);
    expect(read({ "X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "-2" }).limits).toEqual([
      { limit: 5, remaining: 0 },
    ]);
  });

  it("have no special meaning for names that JavaScript treats specially", () => {
    const headers = [
      "x-ratelimit-remaining-constructor",
      "1",
      "x-ratelimit-__proto__",
      "1",
      "__proto__-ratelimit-limit",
      "1",
    ];
    expect(readRateLimit(headers, { nowMs }).limits).toEqual([{ name: "constructor", remaining: 1 }]);
    expect(Object.hasOwn(Object.prototype, "remaining")).toBe(false);
  });
});

describe("a wait that is stated twice, or among many other fields", () => {
  const nowMs = Date.UTC(2026, 0, 1);
  const in30 = "Thu, 01 Jan 2026 00:00:30 GMT";
  const in60 = "Thu, 01 Jan 2026 00:01:00 GMT";

  it.each([
    [`${in30}, ${in60}`, 60_000],
    [`5, ${in30}`, 30_000],
    [`${in30}, 45`, 45_000],
    ["1.5, 2", 2000],
    [`${in30}, soon`, undefined],
  ])("is the longest, if `Headers` joins two: %s", (text, retryAfterMs) => {
    expect(readRateLimit({ "Retry-After": text }, { nowMs }).retryAfterMs).toBe(retryAfterMs);
  });

  it("is read after any number of other fields", () => {
    const fields = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x-ratelimit-limit-${index}`, "1"]));
    const reading = readRateLimit({ ...fields, "Retry-After": "3", RateLimit: '"a";r=1;t=5' });
    expect(reading).toEqual({ limits: [{ name: "a", remaining: 1, resetAfterMs: 5000 }], retryAfterMs: 3000 });
  });

  it("never throws, for options either", () => {
    expect(readRateLimit({ "Retry-After": "3" }, null as never)).toEqual({ limits: [], retryAfterMs: 3000 });
  });
});
