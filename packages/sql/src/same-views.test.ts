import { startPostgres, type TestPostgres } from "@sluice/test-servers";
import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openPolicyStore } from "./open-policy-store.ts";
import type { PolicyStore, StoreChange } from "./policy-store.ts";
import { rolloutStates } from "./records.ts";
import { readEverything } from "./testing/contract/policy-store-case.ts";
import { sample } from "./testing/sample-records.ts";

let server: TestPostgres;
let postgres: PolicyStore;
let cleaner: pg.Client;

beforeAll(async () => {
  server = await startPostgres();
  postgres = await openPolicyStore({ url: server.url });
  cleaner = new pg.Client({ connectionString: server.url });
  await cleaner.connect();
}, 60_000);

afterAll(async () => {
  await Promise.all([cleaner.end(), postgres.close()]);
  await server.close();
});

/** The store as it was when first opened. */
async function emptyPostgres(): Promise<void> {
  const { rows } = await cleaner.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public' and tablename not like '%schema'",
  );
  await cleaner.query(rows.map(({ name }) => `delete from ${name}`).join(";"));
  await cleaner.query("insert into sluice_pulse (id, generation) values (1, 0)");
}

type Step = (change: StoreChange) => Promise<unknown>;

const id = fc.constantFrom("a", "A", "b", "é", "z-1", "_");
const text = fc.string({ unit: "binary", maxLength: 12 });
const time = fc.nat({ max: 40 });
const maybe = <T>(each: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(each, { nil: undefined });

/** Everything that a change can do, with few names, so that they collide. */
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ id, version: time, document: text, owner: maybe(id), ruleKey: maybe(id), deleted: fc.boolean() }).map(
    (given): Step =>
      (change) =>
        change.putPolicy(sample.policy(given)),
  ),
  fc.record({ policy: id, version: time, why: text, deleted: fc.boolean(), revertOf: maybe(time) }).map(
    (given): Step =>
      (change) =>
        change.addVersion(sample.version(given)),
  ),
  fc.record({ id, policy: id, state: fc.constantFrom(...rolloutStates), createdMs: time, shadow: fc.boolean() }).map(
    (given): Step =>
      (change) =>
        change.putRollout(sample.rollout(given)),
  ),
  fc.record({ value: text, tier: maybe(id), version: time }).map(
    (given): Step =>
      (change) =>
        change.putSubject(sample.subject(given)),
  ),
  fc.record({ value: fc.oneof(id, text), limit: id, untilMs: maybe(time) }).map(
    (given): Step =>
      (change) =>
        change.putSubjectLimit(sample.subjectLimit(given)),
  ),
  fc.record({ value: id }).map(
    ({ value }): Step =>
      (change) =>
        change.deleteSubject("user", value),
  ),
  fc.record({ value: id, limit: id, kind: fc.constantFrom("custom" as const, "override" as const) }).map(
    ({ value, limit, kind }): Step =>
      (change) =>
        change.deleteSubjectLimit("user", value, "login", limit, kind),
  ),
  time.map(
    (at): Step =>
      (change) =>
        change.deleteEndedSubjectLimits(at),
  ),
  fc
    .record({ policy: fc.oneof(id, text), mode: fc.constantFrom("allow" as const, "shadow" as const), untilMs: time })
    .map(
      (given): Step =>
        (change) =>
          change.putDisabled(sample.disabled(given)),
    ),
  fc.record({ value: fc.oneof(id, text), policies: fc.array(text, { maxLength: 2 }), untilMs: time }).map(
    (given): Step =>
      (change) =>
        change.putBlock(sample.block(given)),
  ),
  fc.record({ id, at: time }).map(
    ({ id: named, at }): Step =>
      async (change) => [
        await change.deleteDisabled(named),
        await change.deleteBlock("user", named),
        await change.deleteEndedExceptions(at),
      ],
  ),
  time.map(
    (at): Step =>
      (change) =>
        change.deleteEndedTokens("", at),
  ),
  fc.record({ id, name: id, revokedMs: maybe(time), team: maybe(text) }).map(
    (given): Step =>
      (change) =>
        change.putToken(sample.token(given)),
  ),
  fc.record({ id, at: time }).map(
    (given): Step =>
      (change) =>
        change.touchToken(given.id, given.at),
  ),
  fc.record({ id: text, atMs: time, target: text, actor: id, generation: maybe(time) }).map(
    (given): Step =>
      (change) =>
        change.addAudit(sample.audit(given)),
  ),
  time.map(
    (at): Step =>
      (change) =>
        change.deleteAuditBefore(at, 1_000),
  ),
  fc.record({ id, seenMs: time }).map(
    (given): Step =>
      (change) =>
        change.putNode(sample.node(given)),
  ),
  time.map(
    (at): Step =>
      (change) =>
        change.deleteNodesSeenBefore(at),
  ),
  fc.array(fc.record({ rollout: id, minute: time, decided: time, side: fc.constantFrom("old", "new", "shadow") })).map(
    (given): Step =>
      (change) =>
        change.putTallies(given.map((each) => sample.tally(each))),
  ),
  fc.record({ mode: fc.constantFrom("open", "closed"), sinceMs: time, untilMs: time, reason: text, author: id }).map(
    (given): Step =>
      (change) =>
        change.putKillSwitch(given),
  ),
  fc.constant<Step>((change) => change.putKillSwitch(undefined)),
  fc.constant<Step>((change) => change.nextGeneration()),
  fc.record({ after: text, limit: time }).map(
    (page): Step =>
      (change) =>
        change.policies(page),
  ),
  fc.record({ target: text }).map(
    (query): Step =>
      (change) =>
        change.audit(query),
  ),
);

const seldom = fc.nat({ max: 6 }).map((number) => number === 6);

const change = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 8 }),
  dryRun: seldom,
  fails: seldom,
  minds: fc.boolean(),
});

/** The answer to each step, or the error that refused it. */
async function carryOut(
  store: PolicyStore,
  { steps, dryRun, fails, minds }: typeof change extends fc.Arbitrary<infer T> ? T : never,
) {
  const answers: unknown[] = [];
  const whole = await store
    .change(
      async (each) => {
        answers.length = 0;
        for (const take of steps) {
          try {
            answers.push(await take(each));
          } catch (error) {
            answers.push(String(error));
            if (minds) throw error;
          }
        }
        if (fails) throw new Error("fails");
      },
      { dryRun },
    )
    .catch(String);
  return { answers, whole };
}

it("answers the same in SQLite and in PostgreSQL, and stores the same, after any sequence of changes", {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
      await emptyPostgres();
      const sqlite = await openPolicyStore({ url: "sqlite::memory:" });
      const stores = [sqlite, postgres];
      try {
        for (const each of changes) {
          const [one, other] = await Promise.all(stores.map((store) => carryOut(store, each)));
          expect(one).toEqual(other);
        }
        const [one, other] = await Promise.all(stores.map((store) => store.read(readEverything)));
        expect(one).toEqual(other);
      } finally {
        await sqlite.close();
      }
    }),
    { numRuns: 100 },
  );
});
