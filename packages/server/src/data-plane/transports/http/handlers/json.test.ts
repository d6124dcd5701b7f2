import { createLimiter, ManualClock, StoreUnavailable } from "sluice";
import { parsePolicyText } from "sluice/policy-text";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  accessWithRole,
  createTestService,
  type ListeningTransport,
  listenForTest,
} from "../../../../testing/test-service.ts";
import { wholeHttpServer } from "../../../../testing/whole-servers.ts";

const text = `
domain: shop
descriptors:
  - { key: tenant, rate_limit: { unit: minute, requests_per_unit: 3, name: per-tenant } }
  - { key: partner, rate_limit: { unlimited: true } }
  - { key: kept, on_failure: closed, rate_limit: { unit: minute, requests_per_unit: 3 } }
`;

let listening: ListeningTransport;
let away: boolean;

beforeEach(async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  await clock.advance(12_500);
  const limiter = createLimiter({ policies: parsePolicyText(text).policySet, clock });
  const { counters } = limiter;
  const take = counters.take.bind(counters);
  away = false;
  counters.take = (limits, options) => {
    if (away) throw new StoreUnavailable("storage_unavailable", "gone");
    return take(limits, options);
  };
  const service = createTestService(limiter, { access: accessWithRole("check") });
  const context = { ...service, idempotencyHeader: false, random: undefined, envoyHeaders: true };
  listening = await listenForTest("http", await wholeHttpServer(context));
});

afterEach(() => listening.close());

async function post(body: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`http://${listening.address}/json`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const acme = { entries: [{ key: "tenant", value: "acme" }] };

describe("POST /json", () => {
  it("reads its body as JSON whatever the content type, or without one, as Envoy's server does", async () => {
    const body = Buffer.from(JSON.stringify({ domain: "shop", descriptors: [acme] }));
    for (const type of [undefined, "application/x-www-form-urlencoded", "text/plain"]) {
      const headers = type === undefined ? undefined : { "content-type": type };
      const init = { method: "POST", body, ...(headers && { headers }) };
      const response = await fetch(`http://${listening.address}/json`, init);
      expect([type, response.status, await response.json()]).toMatchObject([type, 200, { overallCode: "OK" }]);
    }
    const other = await fetch(`http://${listening.address}/v1/check`, { method: "POST", body });
    expect([other.status, await other.json()]).toMatchObject([415, { code: "invalid_request" }]);
  });

  it("answers in the JSON of Envoy's messages: 200 for OK, 429 for OVER_LIMIT", async () => {
    const descriptors = [acme, { entries: [{ key: "partner", value: "p" }] }, { entries: [{ key: "x", value: "y" }] }];
    expect(await post({ domain: "shop", descriptors, hitsAddend: 2 })).toEqual({
      status: 200,
      body: {
        overallCode: "OK",
        statuses: [
          {
            code: "OK",
            currentLimit: { requestsPerUnit: 3, unit: "MINUTE", name: "per-tenant" },
            limitRemaining: 1,
            durationUntilReset: "47.500s",
          },
          { code: "OK", limitRemaining: 4_294_967_295 },
          { code: "OK" },
        ],
        responseHeadersToAdd: [
          { key: "RateLimit-Limit", value: "3" },
          { key: "RateLimit-Remaining", value: "1" },
          { key: "RateLimit-Reset", value: "48" },
        ],
      },
    });
    const { status, body } = await post({ domain: "shop", descriptors, hitsAddend: 2 });
    expect(status).toBe(429);
    expect(body).toMatchObject({
      overallCode: "OVER_LIMIT",
      statuses: [{ code: "OVER_LIMIT", limitRemaining: 0 }, {}, {}],
    });
  });

  it("reads both spellings of names, numbers as texts, units by name or number, and null as nothing", async () => {
    const limits = [
      { requests_per_unit: "9", unit: "DAY" },
      { requestsPerUnit: 9, unit: 4 },
    ];
    for (const [i, limit] of limits.entries()) {
      const asked = { domain: "shop", hits_addend: null, descriptors: [{ ...acme, limit, hits_addend: "2" }] };
      const { body } = await post(asked);
      expect(body.statuses).toMatchObject([
        {
          currentLimit: { requestsPerUnit: 9, unit: "DAY" },
          limitRemaining: 7 - 2 * i,
          durationUntilReset: "86387.500s",
        },
      ]);
    }
    const giving = { ...acme, limit: limits[0], hitsAddend: 4, is_negative_hits: true };
    expect((await post({ domain: "shop", descriptors: [giving] })).body).toMatchObject({
      statuses: [{ code: "OK", limitRemaining: 9 }],
    });
    const looking = { ...acme, hits_addend: 0 };
    for (let i = 0; i < 5; i++) expect((await post({ domain: "shop", descriptors: [looking] })).status).toBe(200);
  });

  it.each<[unknown, string]>([
    ["{", "the body is not JSON"],
    ["[]", "must be an object, but is a list"],
    [{ descriptors: [acme] }, "domain is empty"],
    [{ domain: "shop" }, "descriptors are missing"],
    [{ domain: "shop", descriptor: [acme] }, "descriptor: is not a known key; did you mean descriptors?"],
    [
      { domain: "shop", descriptors: [{ ...acme, hits_addend: -1 }] },
      "descriptors[0].hitsAddend: must be a whole number",
    ],
    [
      { domain: "shop", descriptors: [{ ...acme, hits_addend: "18446744073709551615" }] },
      "descriptors[0].hits_addend must be at most 100000",
    ],
    [
      { domain: "shop", descriptors: [{ ...acme, limit: { requestsPerUnit: 2 ** 32, unit: "DAY" } }] },
      "descriptors[0].limit.requestsPerUnit: must be a whole number from 0 to 4294967295",
    ],
    [{ domain: "shop", descriptors: [{ ...acme, hits_addend: 1, hitsAddend: 1 }] }, "is there in both spellings"],
    [
      { domain: "shop", descriptors: [{ ...acme, limit: { unit: "FORTNIGHT" } }] },
      "descriptors[0].limit.unit: must be one of",
    ],
    [
      { domain: "shop", descriptors: [{ ...acme, limit: { requestsPerUnit: 1 } }] },
      "descriptors[0].limit.unit must be SECOND",
    ],
    [{ domain: "shop", descriptors: [{ entries: [{ key: 1 }] }] }, "descriptors[0].entries[0].key: must be a text"],
    ['{ "__proto__": { "domain": "shop" } }', "__proto__: is not a known key"],
  ])("refuses an invalid question with 400: %j", async (body, detail) => {
    const answer = await post(body);
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
    expect(answer.body.detail).toContain(detail);
    expect((await post({ domain: "shop", descriptors: [acme] })).status).toBe(200);
  });

  it("answers 503 if counters are unavailable and the policy fails closed", async () => {
    away = true;
    const kept = { entries: [{ key: "kept", value: "1" }] };
    expect((await post({ domain: "shop", descriptors: [acme] })).status).toBe(200);
    const { status, body } = await post({ domain: "shop", descriptors: [acme, kept] });
    expect([status, body.code]).toEqual([503, "store_unavailable"]);
  });
});
