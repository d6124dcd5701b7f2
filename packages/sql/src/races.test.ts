import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startPostgres } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { migrations } from "./migrations/index.ts";
import { openPolicyStore } from "./open-policy-store.ts";
import { poseAsCockroach } from "./testing/pose-as-cockroach.ts";

const script = fileURLToPath(new URL("./testing/race.ts", import.meta.url));
const run = promisify(execFile);
const processes = 6;
const changesEach = 15;

let folder: string;
let server: Awaited<ReturnType<typeof startPostgres>>;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-races-"));
  server = await startPostgres();
}, 60_000);

afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await server.close();
});

async function race(url: string, changes: number): Promise<readonly number[]> {
  const runs = Array.from({ length: processes }, () =>
    run(process.execPath, ["-C", "source", "--disable-warning=ExperimentalWarning", script, url, String(changes)]),
  );
  const printed = await Promise.all(runs);
  return printed.flatMap(({ stdout }) => JSON.parse(stdout) as number[]);
}

describe.each([
  ["one SQLite file", async () => `sqlite:${path.join(folder, "new", "store.db")}`],
  ["PostgreSQL", () => server.createDatabase()],
  ["a server that says it is CockroachDB", () => poseAsCockroach(server)],
])("processes that start and write at once on %s", (_where, createUrl) => {
  it("create the schema once, and make changes one after another, without losing any", {
    timeout: 120_000,
  }, async () => {
    const url = await createUrl();
    const generations = await race(url, changesEach);
    const everyOne = Array.from({ length: processes * changesEach }, (_, index) => index + 1);
    expect(generations.toSorted((one, other) => one - other)).toEqual(everyOne);
    const store = await openPolicyStore({ url });
    try {
      await store.read(async (view) => {
        expect((await view.pulse()).generation).toBe(everyOne.length);
        expect((await view.policy("login"))?.version).toBe(everyOne.length);
        expect((await view.versions("login")).map(({ version }) => version)).toEqual(everyOne.toReversed());
        // Each change saw all earlier ones: the version that it made is its generation.
        expect((await view.audit()).map(({ generation }) => generation)).toEqual(everyOne.toReversed());
        expect(await view.nodes()).toHaveLength(processes);
      });
    } finally {
      await store.close();
    }
  });
});

it.each([
  ["a PostgreSQL", () => server.createDatabase()],
  ["a server that says it is CockroachDB", () => poseAsCockroach(server)],
])("creates the schema of %s once when many connections ask for it at the same moment", async (_what, createUrl) => {
  for (let round = 0; round < 5; round += 1) {
    const url = await createUrl();
    const stores = await Promise.all(Array.from({ length: 8 }, () => openPolicyStore({ url })));
    expect(await server.psql("select version from sluice_schema", url)).toBe(String(migrations.length));
    await Promise.all(stores.map((store) => store.close()));
  }
});
