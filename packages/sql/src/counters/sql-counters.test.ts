import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startPostgres, type TestPostgres } from "@sluice/test-servers";
import { ManualClock } from "sluice";
import { conversationStartMs, counterStoreContract, type StoreUnderTest } from "sluice/testing";
import { afterAll, beforeAll, describe, test } from "vitest";
import { SqlCounters } from "./sql-counters.ts";
import { withOtherSubjects } from "./testing/with-other-subjects.ts";

let folder: string;
let server: TestPostgres;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-strong-"));
  server = await startPostgres();
}, 60_000);

afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await server.close();
});

const kinds: Readonly<Record<string, () => string>> = {
  "an SQLite file": () => `sqlite:${path.join(folder, "counters.db")}`,
  PostgreSQL: () => server.url,
};

// One store for all, because opening a database takes longer than the conversation in it.
describe.each(Object.entries(kinds))("counters in %s", (_kind, url) => {
  let clock = new ManualClock(conversationStartMs);
  let store: SqlCounters;
  let number = 0;
  beforeAll(() => {
    store = new SqlCounters({ url: url(), deadlineMs: 30_000, tune: { nowMs: () => clock.epochMs() } });
  });
  afterAll(() => store.close());

  test.each(counterStoreContract)("$name", ({ run }) =>
    run((): StoreUnderTest => {
      clock = new ManualClock(conversationStartMs);
      number += 1;
      return { store: withOtherSubjects(store, String(number)), advance: (ms) => clock.advance(ms) };
    }),
  );
});
