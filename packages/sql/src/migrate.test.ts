import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startPostgres } from "@sluice/test-servers";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { SchemaTooNew } from "./errors.ts";
import { migrations } from "./migrations/index.ts";
import type { Migration } from "./migrations/migration.ts";
import { openPolicyStoreAt } from "./open-policy-store.ts";
import type { PolicyStore } from "./policy-store.ts";
import { readEverything } from "./testing/contract/policy-store-case.ts";
import { poseAsCockroach } from "./testing/pose-as-cockroach.ts";
import { sample } from "./testing/sample-records.ts";

const opened: PolicyStore[] = [];
let folder: string;
let server: Awaited<ReturnType<typeof startPostgres>>;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-migrate-"));
  server = await startPostgres();
}, 60_000);

afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
});

afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await server.close();
});

async function open(url: string, known: readonly Migration[] = migrations): Promise<PolicyStore> {
  const store = await openPolicyStoreAt({ url }, known);
  opened.push(store);
  return store;
}

/** A migration that a later version of Sluice might add. */
const later: Migration = {
  version: migrations.length + 1,
  statements: (text) => [
    `alter table sluice_policies add column note ${text}`,
    "alter table sluice_audit add column weight bigint not null default 1",
    "create index sluice_policies_by_owner on sluice_policies (owner)",
  ],
};

let files = 0;

describe("the list of migrations", () => {
  it("counts up from 1 without gaps", () => {
    expect(migrations.map(({ version }) => version)).toEqual(migrations.map((_, index) => index + 1));
  });

  it("only adds, in SQL that every database understands", () => {
    const statements = migrations.flatMap((each) => each.statements("text"));
    for (const statement of statements) {
      expect(statement).toMatch(/^(create (table|unique index|index)|alter table \w+ add column|insert into)/);
      expect(statement).not.toMatch(/serial|identity|trigger|enum|drop|rename|autoincrement/i);
    }
  });
});

describe.each([
  ["an SQLite file", async () => `sqlite:${path.join(folder, `store-${files++}.db`)}`],
  ["PostgreSQL", () => server.createDatabase()],
  ["a server that says it is CockroachDB", () => poseAsCockroach(server)],
])("the schema of %s", (_where, createUrl) => {
  it("is brought from every earlier version to the newest, with what is in it", async () => {
    for (let from = 1; from < migrations.length; from += 1) {
      const url = await createUrl();
      const before = await open(url, migrations.slice(0, from));
      await before.change(async (change) => {
        await change.putPolicy(sample.policy());
        await change.addVersion(sample.version());
        await change.nextGeneration();
      });
      await before.close();
      const after = await open(url);
      await after.change((change) => change.putRollout(sample.rollout()));
      await after.note((note) => note.putNode(sample.node()));
      expect(await after.lead("n1", 1_000)).toBe(true);
      expect(await after.read(readEverything)).toMatchObject({
        pulse: { generation: 1 },
        policies: [sample.policy()],
        versions: [[sample.version()]],
        rollouts: [sample.rollout()],
        nodes: [sample.node()],
      });
    }
  });

  it("is upgraded while a node of the previous version keeps reading and writing", async () => {
    const url = await createUrl();
    const older = await open(url);
    let stop = false;
    let changes = 0;
    const traffic = (async () => {
      while (!stop) {
        changes += 1;
        const version = changes;
        await older.change(async (change) => {
          await change.putPolicy(sample.policy({ version }));
          await change.addVersion(sample.version({ version }));
          await change.addAudit(sample.audit({ id: `a${String(version).padStart(6, "0")}` }));
          await change.nextGeneration();
        });
        await older.note((note) => note.putNode(sample.node({ seenMs: version })));
        expect(await older.read((view) => view.policy("login"))).toEqual(sample.policy({ version }));
      }
    })();
    await expect.poll(() => changes).toBeGreaterThan(3);
    const newer = await open(url, [...migrations, later]);
    const seen = changes;
    await expect.poll(() => changes).toBeGreaterThan(seen + 3);
    stop = true;
    await traffic;
    expect(await newer.read((view) => view.policy("login"))).toEqual(sample.policy({ version: changes }));
    expect((await newer.readPulse()).generation).toBe(changes);
    expect(await newer.read((view) => view.audit())).toHaveLength(changes);
    // It leaves unknown columns alone, even in rows that it replaces.
    await newer.change((change) => change.putPolicy(sample.policy({ id: "other" })));
    expect((await older.read((view) => view.policies())).map(({ id }) => id)).toEqual(["login", "other"]);
  });

  it("is refused and left as it is if it is newer than the program, with both versions and what to do", async () => {
    const url = await createUrl();
    await open(url, [...migrations, later]);
    const refusal = await open(url).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(SchemaTooNew);
    expect(refusal).toMatchObject({ found: migrations.length + 1, known: migrations.length });
    expect((refusal as Error).message).toMatch(
      new RegExp(`schema version ${migrations.length + 1}.*versions up to ${migrations.length}.*start the version`),
    );
    expect((refusal as Error).message).not.toContain(server.password);
    await open(url, [...migrations, later]);
  });

  it("stays as it was if a migration fails", async () => {
    const url = await createUrl();
    await open(url);
    const broken: Migration = {
      version: later.version,
      statements: () => ["create table sluice_half (id integer)", "create tabel sluice_other (id integer)"],
    };
    await expect(open(url, [...migrations, broken])).rejects.toThrow(/syntax error/);
    await open(url);
    await open(url, [...migrations, { ...broken, statements: () => ["create table sluice_half (id integer)"] }]);
  });
});

it("needs no right to create anything in PostgreSQL once the schema exists", async () => {
  const url = await server.createDatabase();
  await open(url);
  await server.psql(
    `create role guest login password 'guest-password';
     grant select, insert, update, delete on all tables in schema public to guest`,
    url,
  );
  const guest = await open(url.replace(/\/\/.*@/, "//guest:guest-password@"));
  await guest.change((change) => change.putPolicy(sample.policy()));
  expect(await guest.read((view) => view.policies())).toHaveLength(1);
});

describe("a migration whose statements run outside of a transaction", () => {
  it.each([
    [
      "nothing but an empty table of versions",
      "create table sluice_schema (id integer primary key, version integer not null)",
    ],
    [
      "the first tables, a row and an index",
      `create table sluice_schema (id integer primary key, version integer not null);
       insert into sluice_schema values (1, 0);
       ${migrations[0]?.statements("text").slice(0, 4).join(";")}`,
    ],
  ])("continues if a node stopped after creating %s", async (_what, made) => {
    const url = await poseAsCockroach(server);
    // One statement at a time, as the node had made them.
    for (const statement of made.split(";")) await server.psql(statement, url);
    const store = await open(url, [...migrations, later]);
    await store.change((change) => change.nextGeneration());
    expect(await server.psql("select version from sluice_schema", url)).toBe(String(later.version));
  });

  it("waits for another node that is creating the same object", async () => {
    const url = await poseAsCockroach(server);
    const refusal = "raise exception 'index in the middle of being added, try again later' using errcode = '55000'";
    await server.psql(
      `create sequence attempts;
       create function refuse_first() returns event_trigger language plpgsql as $$ begin
         if nextval('attempts') in (2, 4, 5, 6) then ${refusal}; end if;
       end $$;
       create event trigger refuse_first on ddl_command_start execute function refuse_first()`,
      url,
    );
    const store = await open(url);
    expect((await store.readPulse()).generation).toBe(0);
    expect(Number(await server.psql("select last_value from attempts", url))).toBeGreaterThan(10);
  });

  it("changes nothing when it is run again", async () => {
    const url = await poseAsCockroach(server);
    await open(url, [...migrations, later]);
    const dump =
      "select table_name, column_name from information_schema.columns where table_name like 'sluice_%' order by 1, 2";
    const indexes = "select indexname from pg_indexes where tablename like 'sluice_%' order by 1";
    const whole = [await server.psql(dump, url), await server.psql(indexes, url)];
    await server.psql("update sluice_schema set version = 0", url);
    await server.psql("update sluice_pulse set generation = 7", url);
    const again = await open(url, [...migrations, later]);
    expect([await server.psql(dump, url), await server.psql(indexes, url)]).toEqual(whole);
    expect((await again.readPulse()).generation).toBe(7);
  });
});
