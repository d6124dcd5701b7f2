import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const folder = new URL(".", import.meta.url);
const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
  (name) => name.endsWith(".ts") && !name.endsWith(".test.ts"),
);

/** What CockroachDB lacks, or does in another way than PostgreSQL. */
const foreign = [
  /\bcreate\s+(?:or\s+replace\s+)?(?:constraint\s+)?trigger\b/i,
  /\bcreate\s+sequence\b|\bnextval\b|\b(?:big|small)?serial\b|\bgenerated\s+(?:always|by default)\s+as\s+identity\b/i,
  /\bpg_(?:try_)?advisory/i,
  /\block\s+table\b/i,
  /\bexclude\s+using\b/i,
  /\bcreate\s+(?:or\s+replace\s+)?(?:function|procedure|rule)\b/i,
];

it("is plain: no triggers, sequences, advisory locks, locked tables, exclusions or functions", () => {
  expect(files.length).toBeGreaterThan(10);
  expect(files).toContain("migrations/0001-policies.ts");
  for (const name of files) {
    const text = readFileSync(new URL(name, folder), "utf8");
    for (const pattern of foreign) expect(`${name}: ${pattern.exec(text)?.[0] ?? "plain"}`).toBe(`${name}: plain`);
  }
});

it("is told from what is not", () => {
  for (const text of [
    "create trigger t before update on policies",
    "id bigserial primary key",
    "select nextval('generations')",
    "select pg_advisory_lock(1)",
    "lock table policies",
    "create or replace function f()",
  ])
    expect(foreign.some((pattern) => pattern.test(text))).toBe(true);
  expect(foreign.some((pattern) => pattern.test("create table policies (id text primary key)"))).toBe(false);
});
