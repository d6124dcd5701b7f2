import { readFile } from "node:fs/promises";
import path from "node:path";
import { startPostgres, type TestPostgres } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { generationChannel } from "./generation-channel.ts";
import { migrations } from "./migrations/index.ts";
import type { Migration } from "./migrations/migration.ts";
import { openPolicyStoreAt } from "./open-policy-store.ts";
import type { PolicyStore } from "./policy-store.ts";
import { openPostgresListener } from "./postgres-notices.ts";
import { partForms, reservedNames, type SqlForm, separators, statementForms } from "./testing/plain-sql-forms.ts";
import { policyStoreContract } from "./testing/policy-store-contract.ts";
import { poseAsCockroach } from "./testing/pose-as-cockroach.ts";

const patience = { timeout: 30_000, interval: 50 };
let server: TestPostgres;
/** All statements that were sent to PostgreSQL, and to a server that says it is CockroachDB. */
let sent: Readonly<Record<"postgres" | "cockroach", readonly string[]>>;
/** The columns of all tables by name, and whether they may be NULL. */
let columns: ReadonlyMap<string, boolean>;

beforeAll(async () => {
  const settings = { logging_collector: "on", log_destination: "jsonlog", log_filename: "sent", log_rotation_age: "0" };
  server = await startPostgres({ settings: { ...settings, log_statement: "all", log_min_messages: "log" } });
  const postgres = await useStore(() => server.createDatabase());
  const cockroach = await useStore(() => poseAsCockroach(server));
  columns = await readColumns(postgres[0]!);
  sent = { postgres: await readSent(postgres), cockroach: await readSent(cockroach) };
}, 300_000);

afterAll(() => server.close());

/** Statements that later migrations may consist of. */
const later: Migration = {
  version: migrations.length + 1,
  statements: (text) => [
    `alter table sluice_policies add column later_note ${text}`,
    "alter table sluice_audit add column later_weight bigint not null default 1",
  ],
};

/**
 * Runs the whole contract, migrates from every version, alone and several at once, and listens. Resolves with all URLs.
 */
async function useStore(createUrl: () => Promise<string>): Promise<readonly string[]> {
  const [urls, opened]: [string[], PolicyStore[]] = [[], []];
  const open = async (url: string, known: readonly Migration[] = migrations): Promise<PolicyStore> => {
    const store = await openPolicyStoreAt({ url }, known);
    opened.push(store);
    return store;
  };
  const create = async (): Promise<string> => {
    const url = await createUrl();
    urls.push(url);
    return url;
  };
  const closeAll = async (): Promise<void> => {
    await Promise.all(opened.splice(0).map((store) => store.close()));
  };
  const grown = await create();
  for (let known = 0; known <= migrations.length; known += 1)
    await (await open(grown, migrations.slice(0, known))).close();
  await open(grown, [...migrations, later]);
  for (const { run } of policyStoreContract) {
    const url = await create();
    await run({ store: await open(url), openAnother: () => open(url) });
    // The server has connections for a few stores at a time.
    await closeAll();
  }
  const contested = await create();
  await Promise.all(Array.from({ length: 4 }, () => open(contested)));
  await listenOnce(contested);
  await closeAll();
  return urls;
}

/** Waits until it has checked whether the server is up. */
async function listenOnce(url: string): Promise<void> {
  const listener = openPostgresListener({ url, channel: generationChannel, probeEveryMs: 1, onMessage() {} });
  const probing = "select count(*) from pg_stat_activity where query = 'select 1'";
  await vi.waitFor(async () => expect(await server.psql(probing, url)).toBe("1"), patience);
  await listener.close();
}

async function readColumns(url: string): Promise<ReadonlyMap<string, boolean>> {
  const nullable = "select column_name, bool_or(is_nullable = 'YES') from information_schema.columns";
  const lines = await server.psql(`${nullable} where table_name like 'sluice_%' group by 1`, url);
  return new Map(lines.split("\n").map((line) => [line.split("|")[0]!, line.endsWith("|t")]));
}

/** Reads the server's own log, without psql's statements. */
async function readSent(urls: readonly string[]): Promise<readonly string[]> {
  const databases = new Set(urls.map((url) => new URL(url).pathname.slice(1)));
  const statements = new Set<string>();
  for (const line of (await readLog()).split("\n")) {
    const { dbname, application_name, message } = JSON.parse(line) as Readonly<Record<string, string | undefined>>;
    const text = /^(?:statement|execute [^:]*): (.*)$/s.exec(message ?? "")?.[1];
    if (text === undefined || application_name !== "sluice" || !databases.has(dbname ?? "")) continue;
    for (const statement of text.split(";")) statements.add(statement.trim().replaceAll(/\s+/g, " "));
  }
  return [...statements];
}

/** Whole lines. The server writes in order, with a delay, so everything sent earlier precedes this statement. */
async function readLog(): Promise<string> {
  const mark = "select 'this is the end'";
  await server.psql(mark);
  const file = path.join(server.folder, "data", "log", "sent.json");
  const log = await vi.waitFor(async () => {
    const text = await readFile(file, "utf8");
    expect(text).toContain(mark);
    return text;
  }, patience);
  return log.slice(0, log.lastIndexOf("\n"));
}

/** A statement with its names, parameters and numbers replaced: `select name from name where name = $`. */
function reduce(statement: string): string {
  const tokens = statement.match(/"[^"]*"|\$\d+|\d+|\w+|<>|<=|>=|\S/g) ?? [];
  return tokens
    .map((token, index) => {
      if (token === '"excluded"') return "excluded";
      if (token === '"C"' && tokens[index - 1] === "collate") return token;
      if (token.startsWith('"') || token.startsWith("sluice_")) return "name";
      if (columns.has(token) && tokens[index + 1] !== "(") return "name";
      if (/^\d+$/.test(token)) return "0";
      return token.startsWith("$") ? "$" : token.toLowerCase();
    })
    .join(" ");
}

/** A pattern that accepts the same reduced statements as a form. */
function patternFromForm(form: string): string {
  const tokens = form.split(/ (?![^<]*>)/).map((token, index) => {
    const [, opening = "", core = "", closing = ""] = /^(\[*)(.*?)(\]*)$/.exec(token) ?? [];
    const part = /^<(\w+)>$/.exec(core)?.[1];
    const space = index === 0 ? "" : " ";
    const literal = core.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return (
      "(?:".repeat(opening.length) +
      space +
      (part === undefined ? literal : partPattern(part)) +
      ")?".repeat(closing.length)
    );
  });
  return tokens.join("");
}

const partPatterns = new Map<string, string>();

function partPattern(part: string): string {
  const known = partPatterns.get(part);
  if (known !== undefined) return known;
  const forms = partForms.filter((each) => each.part === part).map(({ form }) => patternFromForm(form));
  if (forms.length === 0) throw new Error(`no form of <${part}>`);
  const one = `(?:${forms.toSorted((a, b) => b.length - a.length).join("|")})`;
  const separator = separators[part];
  const inParentheses = part === "condition" ? `(?:\\( )*${one}(?: \\))*` : one;
  const pattern = separator === undefined ? one : `${inParentheses}(?: (?:${separator}) ${inParentheses})*`;
  partPatterns.set(part, pattern);
  return pattern;
}

const takes = (form: string, reduced: string): boolean => new RegExp(`^${patternFromForm(form)}$`).test(reduced);
const holds = (form: string, reduced: string): boolean =>
  new RegExp(`(?:^| )${patternFromForm(form)}(?: |$)`).test(reduced);

function judge(statement: string): string | undefined {
  const reduced = reduce(statement);
  if (statementForms.some(({ form }) => takes(form, reduced))) return undefined;
  return (
    `${statement}\n  is of the form\n${reduced}\n  which testing/plain-sql-forms.ts does not list. Look it up in CockroachDB's grammar ` +
    "(docs/generated/sql/bnf in its repository) and documentation, also for differences from PostgreSQL: " +
    "types of parameters, order of NULL, transactions. If it is accepted and does the same, add the form with its rule and page; " +
    "if not, write the statement differently."
  );
}

describe("SQL that the policy store sends", () => {
  it("was recorded, for every use of the store", () => {
    expect(sent.postgres.length).toBeGreaterThan(100);
    expect(sent.cockroach.length).toBeGreaterThan(100);
    expect(sent.postgres).toContain(`listen "${generationChannel}"`);
    expect(sent.postgres).toContain("begin isolation level repeatable read, read only");
  });

  it.each([
    ["PostgreSQL", "postgres"],
    ["a server that says it is CockroachDB", "cockroach"],
  ] as const)("to %s has only forms that are listed with the CockroachDB rule that accepts them", (_where, kind) => {
    expect(sent[kind].map(judge).filter((problem) => problem !== undefined)).toEqual([]);
  });

  it("to a server that says it is CockroachDB has no form that is for PostgreSQL alone", () => {
    const foreign = [...statementForms, ...partForms].filter(({ not }) => not?.startsWith("sent to no") === true);
    expect(foreign).toHaveLength(2);
    for (const statement of sent.cockroach)
      for (const { form } of foreign) expect([statement, holds(form, reduce(statement))]).toEqual([statement, false]);
  });

  it("has every form that is listed", () => {
    const reduced = sent.postgres.concat(sent.cockroach).map(reduce);
    const isUsed = ({ form }: SqlForm): boolean => reduced.some((each) => takes(form, each));
    expect(statementForms.filter((form) => !isUsed(form))).toEqual([]);
    expect(partForms.filter(({ form }) => !reduced.some((each) => holds(form, each)))).toEqual([]);
  });

  it("orders by columns that are never NULL, which sorts last in PostgreSQL and first in the others", () => {
    const ordered = sent.postgres.flatMap(
      (each) => / order by (.*?)(?: limit|$)/.exec(each)?.[1]?.match(/\w+(?=")/g) ?? [],
    );
    expect(new Set(ordered).size).toBeGreaterThan(5);
    expect([...new Set(ordered)].filter((column) => columns.get(column) !== false)).toEqual([]);
  });

  it("uses no bare name that CockroachDB reserves", () => {
    expect([...columns.keys()].filter((column) => reservedNames.has(column))).toEqual([]);
  });
});

describe("a form that is not listed", () => {
  it.each([
    "create trigger t before update on sluice_policies",
    "create table sluice_x (id bigserial primary key)",
    "create table sluice_x (id bigint generated always as identity)",
    "select nextval($1)",
    "select pg_advisory_lock($1)",
    "lock table sluice_policies",
    'select "id" from "sluice_policies" where "id" = $1 for update skip locked',
    'select "id" from "sluice_policies" where "id" like $1',
    'select "id" from "sluice_policies" order by "id" nulls last',
    'select distinct on ("id") "id" from "sluice_policies"',
    'insert into "sluice_policies" ("id") values ($1) on conflict on constraint sluice_policies_pkey do nothing',
    'delete from "sluice_nodes" using "sluice_policies" where "id" = $1',
    'update "sluice_pulse" set "generation" = "generation" + $1 where "id" = $2 returning "generation"',
    "create table sluice_x (id text references sluice_policies)",
    "alter table sluice_policies add column id jsonb",
    "create index concurrently sluice_x on sluice_policies (id)",
    "savepoint s",
    "set statement_timeout = 1000",
    "begin",
  ])("is reported, with where to look it up: %s", (statement) => {
    expect(judge(statement)).toContain("plain-sql-forms.ts does not list");
  });
});
