import { readFileSync } from "node:fs";
import throttler from "@nestjs/throttler/package.json" with { type: "json" };
import express from "express/package.json" with { type: "json" };
import koa from "koa/package.json" with { type: "json" };
import { expect, inject, it } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    readonly majors: "newest" | "oldest";
  }
}

/** The versions that a package.json pins. */
function pinned(manifest: string, field: "dependencies" | "devDependencies"): Readonly<Record<string, string>> {
  const text = readFileSync(new URL(manifest, import.meta.url), "utf8");
  return (JSON.parse(text) as Record<string, Record<string, string>>)[field]!;
}

it("these tests run on the majors that they say they run on", () => {
  const newest = pinned("../../packages/middleware/package.json", "devDependencies");
  const oldest = pinned("../oldest/package.json", "dependencies");
  const expected = inject("majors") === "oldest" ? { ...newest, ...oldest } : newest;
  expect({ express: express.version, koa: koa.version, throttler: throttler.version }).toEqual({
    express: expected.express,
    koa: expected.koa,
    throttler: expected["@nestjs/throttler"],
  });
  expect(oldest.express).not.toBe(newest.express);
});
