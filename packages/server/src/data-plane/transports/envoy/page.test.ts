import { readFile } from "node:fs/promises";
import { RateLimitResponse_RateLimit_Unit as Unit } from "@sluice/protocol/envoy";
import { createLimiter } from "sluice";
import { parsePolicyText } from "sluice/policy-text";
import { parseShape } from "sluice/shape";
import { describe, expect, it } from "vitest";
import { createTestService } from "../../../testing/test-service.ts";
import { rateLimitRequestShape, rateLimitResponseJson } from "./rate-limit-json.ts";
import { renderLimit } from "./render-status.ts";
import { shouldRateLimit } from "./should-rate-limit.ts";

const page = await readFile(new URL("../../../../../../docs/envoy.md", import.meta.url), "utf8");
const [, file = ""] = /```yaml\n(domain: shop\n[\s\S]*?)```/.exec(page) ?? [];

describe("docs/envoy.md", () => {
  it("shows what the file on it really answers", async () => {
    const [, asked = ""] = /-d '(.*)'/.exec(page) ?? [];
    const [, told = ""] = /```json\n([\s\S]*?)```/.exec(page) ?? [];
    const service = createTestService(createLimiter({ policies: parsePolicyText(file).policySet }));
    const request = parseShape(rateLimitRequestShape, JSON.parse(asked), "invalid_request", "the body");
    const answer = rateLimitResponseJson(
      await shouldRateLimit(request, service, { caller: service.access.identify(undefined) }),
    );
    const wait = answer.statuses[0]?.durationUntilReset;
    expect(wait).toMatch(/^\d+(\.\d+)?s$/);
    expect(JSON.parse(JSON.stringify(answer).replace(wait!, "28800s"))).toEqual(JSON.parse(told));
  });

  it("calls limits by the ids that they have", () => {
    const ids = parsePolicyText(file).policySet.policies.map(({ id }) => id);
    for (const [id] of page.matchAll(/envoy:shop\/[\w@:/.-]*\w/g)) expect(ids).toContain(id);
  });
});

describe("a window in Envoy's units", () => {
  it.each([
    [{ limit: 7, ms: 1_000 }, 7, Unit.SECOND],
    [{ limit: 10, ms: 500 }, 20, Unit.SECOND],
    [{ limit: 2_000, ms: 900_000 }, 8_000, Unit.HOUR],
    [{ limit: 10, ms: 7_000 }, 85, Unit.MINUTE],
    [{ limit: 1, ms: 7 * 86_400_000 }, 1, Unit.WEEK],
    [{ limit: 3, ms: 30 * 86_400_000 }, 3, Unit.MONTH],
    [{ limit: 20, ms: 730 * 86_400_000 }, 10, Unit.YEAR],
    [{ limit: 1e12, ms: 86_400_000 }, 4_294_967_295, Unit.DAY],
  ])("%j is %d per unit %d", ({ limit, ms }, requestsPerUnit, unit) => {
    const window = { limit, per: { kind: "ms", ms }, burst: limit } as const;
    expect(renderLimit(window, "n")).toEqual({ requestsPerUnit, unit, name: "n" });
  });

  it("of the calendar is a day or a month, and one that never ends has no unit", () => {
    const calendar = { kind: "calendar", unit: "day", timeZone: "UTC" } as const;
    expect(renderLimit({ limit: 5, per: calendar, burst: 5 }, "").unit).toBe(Unit.DAY);
    expect(renderLimit({ limit: 5, per: { ...calendar, unit: "month" }, burst: 5 }, "").unit).toBe(Unit.MONTH);
    expect(renderLimit({ limit: 5, per: { kind: "never" }, burst: 5 }, "").unit).toBe(Unit.UNKNOWN);
  });
});
