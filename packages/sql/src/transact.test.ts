import { CompiledQuery } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Database, type OpenTransaction, TransactionConflict } from "./database.ts";
import { PolicyStoreUnavailable } from "./errors.ts";
import { openSqlite } from "./sqlite-database.ts";
import { transact } from "./transact.ts";

let database: Database;

beforeEach(async () => {
  database = await openSqlite(":memory:");
  await transact(database, "migrate", ({ run }) => run(plain("create table t (n integer primary key)")));
});

afterEach(() => database.close());

function plain(statement: string): { compile(): CompiledQuery } {
  return { compile: () => CompiledQuery.raw(statement) };
}

function countRows(): Promise<number> {
  return transact(database, "read", async ({ all }) => (await all(plain("select n from t"))).length);
}

/** The database, with a hook at the end of its transactions. */
function withEnds(commit: (transaction: OpenTransaction) => Promise<void>): Database {
  return new Proxy(database, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name !== "begin") return typeof value === "function" ? value.bind(target) : value;
      return async (...args: Parameters<Database["begin"]>): Promise<OpenTransaction> => {
        const transaction = await target.begin(...args);
        return {
          ask: (sql, parameters) => transaction.ask(sql, parameters),
          commit: () => commit(transaction),
          rollback: () => transaction.rollback(),
        };
      };
    },
  });
}

describe("a transaction", () => {
  it("is undone when a statement failed, even if the caller continued", async () => {
    const work = transact(database, "change", async ({ run }) => {
      await run(plain("insert into t values (1)"));
      await run(plain("insert into t values (1)")).catch(() => undefined);
      await run(plain("insert into t values (2)")).catch(() => undefined);
      return "went on";
    });
    await expect(work).rejects.toThrow(/UNIQUE/);
    expect(await countRows()).toBe(0);
  });

  it("is retried after a conflict, and done once", async () => {
    let attempts = 0;
    const meetsTwo = withEnds(async (transaction) => {
      attempts += 1;
      if (attempts < 3) throw new TransactionConflict("conflict");
      await transaction.commit();
    });
    await transact(meetsTwo, "change", ({ run }) => run(plain("insert into t values (1)")));
    expect(attempts).toBe(3);
    expect(await countRows()).toBe(1);
  });

  it("is retried even if the caller wrapped or swallowed the error", async () => {
    let attempts = 0;
    await transact(database, "change", async (session) => {
      attempts += 1;
      await session.run(plain("insert into t values (1)"));
      if (attempts > 1) return;
      (session as unknown as { failure: unknown }).failure = new TransactionConflict("conflict");
      throw new Error("something else");
    });
    expect(attempts).toBe(2);
  });

  it("is not retried if it may have been done", async () => {
    let attempts = 0;
    const losesAnswer = withEnds(async (transaction) => {
      attempts += 1;
      await transaction.commit();
      throw new PolicyStoreUnavailable("no answer");
    });
    const work = transact(losesAnswer, "change", ({ run }) => run(plain("insert into t values (1)")));
    await expect(work).rejects.toThrow(PolicyStoreUnavailable);
    expect([attempts, await countRows()]).toEqual([1, 1]);
  });

  it("never sees another's uncommitted changes, on one connection", async () => {
    await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        transact(database, n % 2 === 0 ? "change" : "note", async ({ all, run }) => {
          const before = await all(plain("select n from t"));
          await new Promise((resolve) => setImmediate(resolve));
          await run(plain(`insert into t values (${n})`));
          await new Promise((resolve) => setImmediate(resolve));
          expect(await all(plain("select n from t"))).toHaveLength(before.length + 1);
        }),
      ),
    );
    expect(await countRows()).toBe(20);
  });

  it("gives the rest of the process its turn, however many follow one another", async () => {
    let rounds = 0;
    const ticking = setInterval(() => {
      rounds += 1;
    }, 1);
    while (rounds < 3) await transact(database, "read", ({ all }) => all(plain("select n from t")));
    await transact(database, "read", async ({ all }) => {
      rounds = 0;
      while (rounds < 3) await all(plain("select n from t"));
    });
    const many = "with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 300000)";
    await transact(database, "read", async ({ all }) => {
      rounds = 0;
      expect(await all(plain(`${many} select n from numbers`))).toHaveLength(300_000);
      expect(rounds).toBeGreaterThan(1);
    });
    clearInterval(ticking);
  });

  it("refuses fractional numbers before they are sent", async () => {
    const query = { compile: () => CompiledQuery.raw("select n from t where n > ?", [1.5]) };
    await expect(transact(database, "read", ({ all }) => all(query))).rejects.toThrow(/one is 1.5/);
  });
});
