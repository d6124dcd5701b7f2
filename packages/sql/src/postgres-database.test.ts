import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { createCertificates, createFaultyProxy, startPostgres, type TestPostgres } from "@sluice/test-servers";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { PolicyStoreUnavailable } from "./errors.ts";
import { openPolicyStore } from "./open-policy-store.ts";
import type { PolicyStore, PolicyStoreOptions } from "./policy-store.ts";
import { sample } from "./testing/sample-records.ts";

const closing: { close(): Promise<void> }[] = [];
let server: TestPostgres;

beforeAll(async () => {
  server = await startPostgres();
}, 60_000);

afterEach(async () => {
  await Promise.all(closing.splice(0).map((each) => each.close()));
});

afterAll(() => server.close());

/** Short timeouts, for tests in which nothing answers. */
/** Short for lost packets, and long enough for an answer on a busy machine. */
const hasty = { connectTimeoutMs: 2_000, statementTimeoutMs: 2_000 };

async function open(url: string, options: Partial<PolicyStoreOptions> = {}): Promise<PolicyStore> {
  const store = await openPolicyStore({ url, ...options });
  closing.push(store);
  return store;
}

async function openThroughProxy(options: Partial<PolicyStoreOptions> = {}) {
  const url = await server.createDatabase();
  const proxy = await createFaultyProxy({ host: "127.0.0.1", port: server.port });
  const store = await open(url.replace(`:${server.port}/`, `:${proxy.port}/`), options);
  closing.push(proxy);
  return { url, proxy, store };
}

function bump(store: PolicyStore): Promise<number> {
  return store.change((change) => change.nextGeneration());
}

describe("a PostgreSQL that is killed and comes back", () => {
  it("is unavailable meanwhile, and then serves the same store again, with all acknowledged changes", async () => {
    const fragile = await startPostgres();
    closing.push(fragile);
    const store = await open(fragile.url);
    const acknowledged: number[] = [];
    let stop = false;
    const refusals: unknown[] = [];
    const traffic = (async () => {
      while (!stop) {
        try {
          acknowledged.push(await bump(store));
          await store.read((view) => view.policies());
        } catch (error) {
          refusals.push(error);
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      }
    })();
    for (const signal of ["SIGKILL", "SIGINT", "SIGKILL"] as const) {
      const before = acknowledged.length;
      await expect.poll(() => acknowledged.length, { timeout: 30_000 }).toBeGreaterThan(before + 3);
      const refused = refusals.length;
      await fragile.stop(signal);
      await expect.poll(() => refusals.length, { timeout: 30_000 }).toBeGreaterThan(refused + 3);
      await fragile.start();
    }
    const before = acknowledged.length;
    await expect.poll(() => acknowledged.length, { timeout: 30_000 }).toBeGreaterThan(before + 3);
    stop = true;
    await traffic;
    expect(new Set(refusals.map((error) => (error as Error).name))).toEqual(new Set(["PolicyStoreUnavailable"]));
    // Ascending, and the last one is stored: no acknowledged change is lost, and none was made twice.
    expect(acknowledged).toEqual([...new Set(acknowledged)].toSorted((one, other) => one - other));
    expect((await store.readPulse()).generation).toBe(acknowledged.at(-1));
  }, 60_000);

  it("is unavailable, and does not end the process, when it closes the connection right after accepting it", async () => {
    const message = (type: string, body: Buffer): Buffer => {
      const head = Buffer.alloc(5);
      head.write(type);
      head.writeInt32BE(body.length + 4, 1);
      return Buffer.concat([head, body]);
    };
    const welcome = [message("R", Buffer.alloc(4)), message("Z", Buffer.from("I"))];
    const goodbye = message("E", Buffer.from("SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0"));
    const doomed = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => socket.end(Buffer.concat([...welcome, goodbye])));
    });
    await once(doomed.listen(0, "127.0.0.1"), "listening");
    const { port } = doomed.address() as AddressInfo;
    await expect(open(`postgres://127.0.0.1:${port}/x`)).rejects.toThrow(PolicyStoreUnavailable);
    doomed.close();
  });

  it("is unavailable when it is opened", async () => {
    const gone = await startPostgres();
    closing.push(gone);
    await gone.stop("SIGKILL");
    const error = await open(gone.url).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(PolicyStoreUnavailable);
    expect((error as Error).message).toContain(`127.0.0.1:${gone.port}`);
  });
});

describe("a network to PostgreSQL that fails", () => {
  it("loses the answer to a commit: the change is made once, and the caller learns that it may have been made", async () => {
    const { url, proxy, store } = await openThroughProxy();
    const lost = store.change(async (change) => {
      const generation = await change.nextGeneration();
      await change.putPolicy(sample.policy());
      proxy.dropRepliesOnce();
      return generation;
    });
    await expect(lost).rejects.toThrow(PolicyStoreUnavailable);
    await expect(lost).rejects.toThrow(/whether the last change was made is not known/);
    const direct = await open(url);
    await expect.poll(async () => (await direct.readPulse()).generation).toBe(1);
    expect(await bump(store)).toBe(2);
  });

  it("breaks before a commit: nothing is changed", async () => {
    const { url, proxy, store } = await openThroughProxy();
    const broken = store.change(async (change) => {
      await change.nextGeneration();
      proxy.resetAll();
      await change.putPolicy(sample.policy());
    });
    await expect(broken).rejects.toThrow(PolicyStoreUnavailable);
    await expect(broken).rejects.not.toThrow(/not known/);
    const direct = await open(url);
    expect((await direct.readPulse()).generation).toBe(0);
    expect(await bump(store)).toBe(1);
  });

  it("drops everything: every call ends in time, and works again afterwards", async () => {
    const { proxy, store } = await openThroughProxy(hasty);
    await bump(store);
    proxy.blackhole();
    const asked = [
      store.readPulse(),
      store.read((view) => view.policies()),
      bump(store),
      store.note((note) => note.putNode(sample.node())),
      store.lead("n1", 1_000),
      bump(store),
    ];
    for (const each of asked) await expect(each).rejects.toThrow(PolicyStoreUnavailable);
    proxy.heal();
    await expect.poll(() => bump(store).catch(() => 0), { timeout: 30_000 }).toBe(2);
  });

  it("drops everything while a store is opened, or closed", async () => {
    const { proxy, store } = await openThroughProxy(hasty);
    await store.readPulse();
    proxy.blackhole();
    const url = `postgres://sluice:${server.password}@127.0.0.1:${proxy.port}/postgres`;
    await expect(open(url, hasty)).rejects.toThrow(PolicyStoreUnavailable);
    await store.close();
  });

  it("cuts off a node in the middle of a change, which delays other nodes' changes only briefly", async () => {
    const { url, proxy, store } = await openThroughProxy(hasty);
    const direct = await open(url, hasty);
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let holds = false;
    const vanished = store.change(async (change) => {
      await change.nextGeneration();
      proxy.blackhole();
      holds = true;
      await held;
    });
    vanished.catch(() => undefined);
    await expect.poll(() => holds).toBe(true);
    await expect.poll(() => bump(direct).catch(() => 0), { timeout: 30_000 }).toBe(1);
    release();
    await expect(vanished).rejects.toThrow(PolicyStoreUnavailable);
    expect((await direct.readPulse()).generation).toBe(1);
  });
});

describe("changes of several nodes", () => {
  it("leave a connection for reads, however many wait for another node's changes", async () => {
    const url = await server.createDatabase();
    const [holder, waiting] = [await open(url), await open(url)];
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let holds = false;
    const holding = holder.change(async (change) => {
      await change.nextGeneration();
      holds = true;
      await held;
    });
    await expect.poll(() => holds).toBe(true);
    const changes = Array.from({ length: 12 }, () => bump(waiting));
    for (let look = 0; look < 20; look += 1) expect((await waiting.readPulse()).generation).toBe(0);
    release();
    await holding;
    expect((await Promise.all(changes)).toSorted((one, other) => one - other)).toEqual(
      Array.from({ length: 12 }, (_, index) => index + 2),
    );
  });
});

describe("a change that the server ends", () => {
  /**
   * Makes changes fail with an SQLSTATE the first `times` times, at the statement or at COMMIT. Counts attempts in a
   * way that no ROLLBACK undoes.
   */
  async function failFirst(url: string, state: string, when: string, times: number): Promise<() => Promise<string>> {
    await server.psql(
      `create sequence attempts;
       create function fail_first() returns trigger language plpgsql as $$ begin
         if nextval('attempts') <= ${times} then
           raise exception 'restart transaction' using errcode = '${state}';
         end if;
         return null;
       end $$;
       create constraint trigger fail_first after update on sluice_pulse deferrable ${when}
         for each row execute function fail_first()`,
      url,
    );
    return () => server.psql("select last_value from attempts", url);
  }

  it.each([
    ["at a statement", "initially immediate"],
    ["at COMMIT", "initially deferred"],
  ])("with a retryable error, %s, is retried until it is made, once", async (_when, when) => {
    const url = await server.createDatabase();
    const store = await open(url);
    const attempts = await failFirst(url, "40001", when, 3);
    expect(await bump(store)).toBe(1);
    expect((await store.readPulse()).generation).toBe(1);
    expect(await attempts()).toBe("4");
  });

  it("without knowing whether it was made is not retried, and the caller is informed", async () => {
    const url = await server.createDatabase();
    const store = await open(url);
    const attempts = await failFirst(url, "40003", "initially deferred", 1);
    const error = await bump(store).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(PolicyStoreUnavailable);
    expect(error).toMatchObject({ maybeDone: true });
    expect(await attempts()).toBe("1");
    expect(await bump(store)).toBe(1);
  });
});

describe("an error from PostgreSQL", () => {
  it("shows the server's address, and never a password", async () => {
    const url = await server.createDatabase();
    const store = await open(url, { applicationName: "sluice-test" });
    expect(store.where).toMatch(/^postgres:\/\/127\.0\.0\.1:\d+\/test_\d+$/);
    await store.readPulse();
    const shown = await server.psql("select count(*) from pg_stat_activity where application_name = 'sluice-test'");
    expect(Number(shown)).toBeGreaterThan(0);
  });

  it.each([
    ["a wrong password", (url: string) => url.replace(/:[^:@]*@/, ":a-wrong-secret@"), PolicyStoreUnavailable],
    ["no such database", (url: string) => `${url}-gone`, PolicyStoreUnavailable],
    ["an invalid port", (url: string) => url.replace(/@.*/, "@127.0.0.1:a-wrong-secret/x"), TypeError],
    ["a missing certificate", (url: string) => `${url}?sslrootcert=/none/ca.crt`, TypeError],
    ["a server without TLS", (url: string) => `${url}?sslmode=verify-full`, PolicyStoreUnavailable],
    ["another protocol", (url: string) => url.replace("postgres:", "mysql:"), TypeError],
  ])("says what is wrong: %s", async (_what, spoil, kind) => {
    const error = (await open(spoil(server.url), hasty).catch((thrown: unknown) => thrown)) as Error;
    expect(error).toBeInstanceOf(kind);
    const told = [error.message, error.stack, JSON.stringify(error), String(error.cause)].join("\n");
    expect(told).not.toContain(server.password);
    expect(told).not.toContain("a-wrong-secret");
  });
});

it("speaks TLS only to a PostgreSQL whose authority is named in the URL", async () => {
  const certificates = await createCertificates();
  const secure = await startPostgres({ tls: certificates });
  closing.push(secure, certificates);
  const store = await open(`${secure.url}?sslmode=verify-full&sslrootcert=${certificates.ca}`);
  await store.readPulse();
  expect(await secure.psql("select count(*) > 0 from pg_stat_ssl where ssl")).toBe("t");
  await expect(open(`${secure.url}?sslmode=verify-full`)).rejects.toThrow(PolicyStoreUnavailable);
});

it("returns numbers as numbers, and refuses those beyond 2^53", async () => {
  const url = await server.createDatabase();
  const store = await open(url);
  await store.change((change) => change.putPolicy(sample.policy({ changedMs: Number.MAX_SAFE_INTEGER })));
  expect((await store.read((view) => view.policy("login")))?.changedMs).toBe(Number.MAX_SAFE_INTEGER);
  await server.psql("update sluice_policies set changed_ms = 9007199254740993", url);
  await expect(store.read((view) => view.policy("login"))).rejects.toThrow(/9007199254740993, which is beyond 2\^53/);
  expect((await store.readPulse()).generation).toBe(0);
});

it("reads a kill switch that an operator set with SQL, without a reason", async () => {
  const url = await server.createDatabase();
  const store = await open(url);
  await server.psql("update sluice_pulse set kill_mode = 'open', kill_until_ms = 5", url);
  const killSwitch = { mode: "open", sinceMs: 0, untilMs: 5, reason: "", author: "" };
  expect(await store.readPulse()).toEqual({ generation: 0, killSwitch });
});
