import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startPostgres, type TestPostgres } from "@sluice/test-servers";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { openPolicyStore } from "./open-policy-store.ts";
import type { PolicyStore } from "./policy-store.ts";
import { policyStoreContract } from "./testing/policy-store-contract.ts";

const opened: PolicyStore[] = [];
let folder: string;
let server: TestPostgres;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-sql-"));
  server = await startPostgres();
}, 60_000);

afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
});

afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await server.close();
});

async function open(url: string): Promise<PolicyStore> {
  const store = await openPolicyStore({ url });
  opened.push(store);
  return store;
}

let files = 0;

const kinds: Readonly<Record<string, () => string | Promise<string>>> = {
  "an SQLite file": () => `sqlite:${path.join(folder, `store-${files++}.db`)}`,
  "SQLite in memory": () => "sqlite::memory:",
  PostgreSQL: () => server.createDatabase(),
};

describe.each(Object.entries(kinds))("a policy store in %s", (_kind, createUrl) => {
  it.each(policyStoreContract.map((one) => [one.name, one] as const))("%s", async (_name, { run }) => {
    const url = await createUrl();
    await run({
      store: await open(url),
      openAnother: url.endsWith(":memory:") ? undefined : () => open(url),
    });
  });
});
