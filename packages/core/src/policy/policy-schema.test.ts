import { describe, expect, it } from "vitest";
import { policyFileSchema } from "./policy-schema.ts";

type Schema = Record<string, unknown>;

function everyPart(part: unknown, visit: (part: Schema) => void): void {
  if (Array.isArray(part)) for (const item of part) everyPart(item, visit);
  else if (typeof part === "object" && part !== null) {
    visit(part as Schema);
    for (const value of Object.values(part)) everyPart(value, visit);
  }
}

describe("policyFileSchema", () => {
  const schema = policyFileSchema();
  const defs = schema.$defs as Record<string, Schema>;
  const [shortWindow, fullWindow] = defs.window!.anyOf as [Schema, Schema];

  it("is JSON Schema 2020-12, and plain data", () => {
    expect(schema.$schema).toBe("https://json-schema.org/draft/2020-12/schema");
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
  });

  it("defines what it refers to, and refers to what it defines", () => {
    const referred = new Set<unknown>();
    everyPart(schema, ({ $ref }) => $ref !== undefined && referred.add($ref));
    expect([...referred].sort()).toEqual(
      Object.keys(defs)
        .map((name) => `#/$defs/${name}`)
        .sort(),
    );
  });

  it("knows every key of a policy, a limit and a window, and describes each", () => {
    const listKeys = (part: unknown) => Object.keys((part as { properties: Schema }).properties).sort();
    expect(listKeys(defs.policy)).toEqual([
      "allow",
      "cost",
      "count_denials",
      "counters",
      "deadline",
      "deny",
      "description",
      "domain",
      "events",
      "id",
      "limits",
      "local_limits",
      "local_share",
      "match",
      "max_overshoot",
      "mode",
      "on_failure",
      "owner",
      "replaces",
      "rollout",
      "unlimited",
      "valid_from",
      "version",
      "warn_at",
    ]);
    expect(listKeys(defs.limit)).toEqual([
      "algorithm",
      "block_for",
      "blockable",
      "by",
      "distinct",
      "missing",
      "name",
      "on_change",
      "tiers",
      "windows",
    ]);
    expect(listKeys(fullWindow)).toEqual(["burst", "limit", "name", "per"]);
    for (const part of [defs.policy, defs.limit])
      for (const [key, property] of Object.entries((part as { properties: Record<string, Schema> }).properties))
        expect(property.description, key).toEqual(expect.any(String));
  });

  it("takes a local share above 0 and up to 1, or a percentage, and local limits like limits", () => {
    const { local_share, local_limits } = defs.policy!.properties as Record<string, Schema>;
    expect(local_share!.anyOf).toMatchObject([{ type: "number", exclusiveMinimum: 0, maximum: 1 }, { type: "string" }]);
    expect(local_limits).toMatchObject({ type: "array", items: { $ref: "#/$defs/limit" }, minItems: 1, maxItems: 64 });
  });

  it("takes the ways to count, and a share that leases may exceed, of a default policy too", () => {
    const { policies: _, default: fallback } = schema.properties as Record<string, { anyOf: Schema[] }>;
    const ofDefault = fallback!.anyOf.find(({ type }) => type === "object")!.properties as Record<string, Schema>;
    for (const { counters, max_overshoot } of [defs.policy!.properties as Record<string, Schema>, ofDefault]) {
      expect(counters).toMatchObject({ enum: ["auto", "exact", "leased", "strong"], default: "auto" });
      expect(max_overshoot).toMatchObject({
        default: 0.01,
        anyOf: [{ type: "number", minimum: 0, maximum: 1 }, { type: "string" }],
      });
    }
  });

  it("forbids keys that are not read", () => {
    expect(schema.additionalProperties).toBe(false);
    expect(defs.policy?.additionalProperties).toBe(false);
    expect(defs.limit?.additionalProperties).toBe(false);
  });

  it("has patterns that engines with unicode rules take", () => {
    everyPart(schema, ({ pattern }) => {
      if (typeof pattern === "string") expect(() => new RegExp(pattern, "u")).not.toThrow();
    });
  });

  it("takes windows in short as they are written", () => {
    const pattern = new RegExp(shortWindow.pattern as string, "u");
    for (const window of ["100/s burst 200", "100k/h", "16.67/s", "10k/month in UTC", "100 once", "10_000/d"])
      expect(window).toMatch(pattern);
    for (const window of ["100", "many/s", "100/s bust 5"]) expect(window).not.toMatch(pattern);
  });
});
