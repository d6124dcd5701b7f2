import { startServer, type TestServer } from "@sluice/test-servers";
import * as fc from "fast-check";
import { SluiceError } from "sluice";
import type { ResolvedLimit } from "sluice/store";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKeyNames } from "./key-names.ts";
import { slotCount, tagSlot } from "./key-slot.ts";
import { createLaneTags, findHome, laneNumber, valueAt } from "./lanes.ts";

function by(dimensions: readonly string[], subject: string, policy = "p"): ResolvedLimit {
  const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(1, 1000)], by: dimensions, policy });
  return resolvedLimit(limit, subject);
}

/** As core joins them: a bar or backslash inside a value is escaped. */
const joined = (values: readonly string[]): string => values.map((one) => one.replace(/[|\\]/g, "\\$&")).join("|");

const value = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom("|", "\\", "a", "\n") }));

describe("tags of lanes", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ flavor: "valkey", args: ["--cluster-enabled", "yes"] });
  });
  afterAll(() => server.close());

  it("lie in the slot that a cluster finds for keys with them, whatever else is in the key", async () => {
    for (const { tag, slot } of [...createLaneTags(64), ...createLaneTags(7)]) {
      const names = createKeyNames(`s${tag}`);
      for (const key of [names.counter("abcdefghij", "{x}}{"), names.requestId("}{"), names.receipt("r")])
        expect(await server.command("CLUSTER", "KEYSLOT", key)).toBe(slot);
    }
  });

  it("are computed as a cluster does, for any text of ASCII", async () => {
    const texts = fc.sample(
      fc.string({ unit: "binary-ascii", minLength: 1 }).filter((one) => !/[{}]/.test(one)),
      500,
    );
    for (const text of texts) expect(tagSlot(text)).toBe(await server.command("CLUSTER", "KEYSLOT", text));
    expect(tagSlot("123456789")).toBe(0x31c3);
  });

  it.each([1, 2, 3, 7, 16, 64, 100, 1024])("of %i lanes lie one in each section of the slots, and differ", (count) => {
    const tags = createLaneTags(count);
    expect(tags).toHaveLength(count);
    tags.forEach(({ tag, slot }, lane) => {
      expect(tag).toMatch(/^\{[0-9a-z]+\}$/);
      expect(Math.floor((slot * count) / slotCount)).toBe(lane);
    });
    expect(new Set(tags.map(({ tag }) => tag)).size).toBe(count);
    expect(createLaneTags(count)).toEqual(tags);
  });

  it.each([0, -1, 1.5, Number.NaN, 1025, 20_000, Number.POSITIVE_INFINITY])("of %d lanes are refused", (count) => {
    expect(() => createLaneTags(count)).toThrow(SluiceError);
  });
});

describe("where a counter lives", () => {
  it("is by the tenant, if the limit has one among its dimensions", () => {
    for (const tenant of ["tenant", "org", "organization", "account"]) {
      expect(findHome(by([tenant], "acme"))).toBe("acme");
      expect(findHome(by(["user", tenant], "u1|acme"))).toBe("acme");
      expect(findHome(by([tenant, "user"], "acme|u1"))).toBe("acme");
    }
    expect(findHome(by(["account", "tenant"], "a|t"))).toBe("t");
  });

  it("is by the first dimension otherwise, and by the limit itself if it has none", () => {
    expect(findHome(by(["user", "endpoint"], "u1|/x"))).toBe("u1");
    const everybody = by([], "");
    expect(findHome(everybody)).toBe(everybody.limit.identity);
  });

  it("is the same for a tenant and the tenant's users, whatever their names", () => {
    fc.assert(
      fc.property(value, value, fc.integer({ min: 1, max: 1024 }), (tenant, user, lanes) => {
        const own = laneNumber(findHome(by(["tenant"], tenant)), lanes);
        expect(laneNumber(findHome(by(["tenant", "user"], joined([tenant, user]))), lanes)).toBe(own);
        expect(laneNumber(findHome(by(["user", "tenant"], joined([user, tenant]), "another")), lanes)).toBe(own);
      }),
    );
  });

  it("spreads subjects evenly over lanes", () => {
    const counts = new Array<number>(64).fill(0);
    for (let i = 0; i < 64_000; i++) counts[laneNumber(`user-${i}`, 64)]! += 1;
    expect(Math.min(...counts)).toBeGreaterThan(800);
    expect(Math.max(...counts)).toBeLessThan(1200);
  });

  it("never changes from one release to the next", () => {
    expect(["", "acme", "u1", "ü", "\ud800"].map((home) => laneNumber(home, 64))).toEqual([13, 5, 12, 29, 6]);
  });
});

describe("a value of a joined subject", () => {
  it("comes back as it went in, with bars and backslashes", () => {
    fc.assert(
      fc.property(fc.array(value, { minLength: 2, maxLength: 5 }), (values) => {
        const subject = joined(values);
        expect(values.map((_, index) => valueAt(subject, index))).toEqual(values);
      }),
      { numRuns: 1000 },
    );
  });

  it("is empty if there is none", () => {
    expect(valueAt("a|b", 2)).toBe("");
    expect(valueAt("a|", 1)).toBe("");
  });
});
