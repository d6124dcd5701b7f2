import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPolicyStore } from "@sluice/sql";
import { startPostgres, startSentinel, startServer, type TestPostgres, type TestServer } from "@sluice/test-servers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { makeTokenAtStore } from "../command/make-token-at-store.ts";
import { parseSettings } from "../settings/parse-settings.ts";
import { createRecordingLog } from "../testing/recording-log.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

const patience = { timeout: 30_000, interval: 10 };
let folder: string;
let logged: string;
let closing: (() => Promise<unknown>)[];
let postgres: TestPostgres;

beforeAll(async () => {
  postgres = await startPostgres();
}, 60_000);
afterAll(() => postgres.close());

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-password-files-"));
  logged = "";
  closing = [() => rm(folder, { recursive: true, force: true })];
});

afterEach(async () => {
  for (const close of closing.reverse()) await close();
});

async function writePassword(name: string, password: string): Promise<string> {
  const file = join(folder, name);
  // As editors write it.
  await writeFile(file, `${password}\n`);
  return file;
}

async function start(env: Readonly<Record<string, string>>): Promise<Daemon> {
  const given = {
    SLUICE_HTTP_PORT: "0",
    SLUICE_GRPC_PORT: "off",
    SLUICE_ADMIN_PORT: "0",
    SLUICE_DEADLINE: "1m",
    ...env,
  };
  const reading = parseSettings(given);
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const log = createRecordingLog((line) => {
    logged += `${JSON.stringify(line)}\n`;
  });
  const daemon = await startDaemon({ settings: reading.settings, log, processMetrics: false });
  closing.push(() => daemon.close());
  return daemon;
}

const isReady = async ({ url }: Daemon): Promise<boolean> => (await fetch(`${url}/readyz?strict`)).ok;

async function startValkey(): Promise<TestServer> {
  const server = await startServer({ flavor: "valkey" });
  closing.push(() => server.close());
  return server;
}

/** Only this password is taken from now on, and everyone has to come with it. */
async function rotate(server: TestServer, password: string): Promise<void> {
  await server.command("ACL", "SETUSER", "limiter", "reset", "on", "allkeys", "allchannels", "+@all", `>${password}`);
  await server.command("CLIENT", "KILL", "USER", "limiter");
}

describe("a password in a file", () => {
  it("of counter servers is read again for every connection, and is in no log", async () => {
    const server = await startValkey();
    await rotate(server, "first-secret");
    const daemon = await start({
      SLUICE_REDIS_URL: server.url,
      REDIS_CLUSTER_USERNAME: "limiter",
      SLUICE_REDIS_PASSWORD_FILE: await writePassword("redis", "first-secret"),
    });
    await expect.poll(() => isReady(daemon), patience).toBe(true);
    await rotate(server, "second-secret");
    await expect.poll(() => logged, patience).toContain("SLUICE_REDIS_PASSWORD_FILE");
    await writePassword("redis", "second-secret");
    await expect.poll(() => isReady(daemon), patience).toBe(true);
    expect(logged).not.toContain("-secret");
  });

  it("of counter servers that is gone when a connection needs it is reported with its setting", async () => {
    const server = await startValkey();
    await rotate(server, "a-secret");
    const file = await writePassword("redis", "a-secret");
    const daemon = await start({
      SLUICE_REDIS_URL: server.url,
      REDIS_CLUSTER_USERNAME: "limiter",
      SLUICE_REDIS_PASSWORD_FILE: file,
    });
    await expect.poll(() => isReady(daemon), patience).toBe(true);
    await rm(file);
    await rotate(server, "a-secret");
    await expect.poll(() => logged, patience).toContain(`${file} does not exist`);
    await writePassword("redis", "a-secret");
    await expect.poll(() => isReady(daemon), patience).toBe(true);
  });

  it("of Sentinels is another one than that of their servers", async () => {
    const sentinel = await startSentinel({ flavor: "valkey", replicas: 0, sentinels: 1 });
    closing.push(() => sentinel.close());
    const [primary] = sentinel.servers;
    await rotate(primary!, "server-secret");
    await sentinel.sentinels[0]!.command(
      ...["ACL", "SETUSER", "watcher", "reset", "on", "allkeys", "allchannels", "+@all", ">sentinel-secret"],
    );
    const [host] = sentinel.sentinels.map(({ port }) => `127.0.0.1:${port}`);
    const daemon = await start({
      SLUICE_REDIS_URL: `redis+sentinel://${host}/${sentinel.masterName}`,
      REDIS_CLUSTER_USERNAME: "limiter",
      SLUICE_REDIS_PASSWORD_FILE: await writePassword("redis", "server-secret"),
      SLUICE_REDIS_SENTINEL_USERNAME: "watcher",
      SLUICE_REDIS_SENTINEL_PASSWORD_FILE: await writePassword("sentinel", "sentinel-secret"),
    });
    await expect.poll(() => isReady(daemon), patience).toBe(true);
  });

  it("of the policy store is read again for every connection, and for its notices", async () => {
    await postgres.psql("create user limiter password 'first-secret' createdb");
    const database = new URL(await postgres.createDatabase());
    await postgres.psql(`alter database ${database.pathname.slice(1)} owner to limiter`);
    const url = `postgres://limiter@127.0.0.1:${postgres.port}${database.pathname}`;
    const file = await writePassword("store", "first-secret");
    const daemon = await start({
      SLUICE_STORE_URL: url,
      SLUICE_STORE_PASSWORD_FILE: file,
      SLUICE_ADMIN_TOKEN_FILE: join(folder, "admin-token"),
    });
    await postgres.psql("alter user limiter password 'second-secret'");
    await writePassword("store", "second-secret");
    const cut = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'limiter'";
    await postgres.psql(cut);
    const listeners = "select count(*) from pg_stat_activity where usename = 'limiter' and query like 'listen%'";
    await expect.poll(() => postgres.psql(listeners), patience).toBe("1");
    // `sluice token make --store` reads it as well, and the server knows the token by its store.
    const request = { name: "new", role: "admin", team: undefined, expiresMs: undefined } as const;
    const { token } = await makeTokenAtStore({ url, passwordFile: file }, request);
    const [admin] = daemon.addresses.admin;
    const ask = () => fetch(`${admin}/api/v1/tokens`, { headers: { authorization: `Bearer ${token.token}` } });
    await expect.poll(async () => (await ask()).status, patience).toBe(200);
    expect(logged).not.toContain("-secret");
  }, 60_000);

  it.each([
    ["SLUICE_REDIS_PASSWORD_FILE (--redis-password-file)", { SLUICE_REDIS_URL: "redis://127.0.0.1:1" }],
    [
      "SLUICE_REDIS_SENTINEL_PASSWORD_FILE (--redis-sentinel-password-file)",
      { SLUICE_REDIS_URL: "redis+sentinel://127.0.0.1:1/a" },
    ],
    ["SLUICE_STORE_PASSWORD_FILE (--store-password-file)", { SLUICE_STORE_URL: "postgres://limiter@127.0.0.1:1/a" }],
  ])("is missed at once, by the name %s", async (setting, env) => {
    const [variable] = setting.split(" ");
    const missing = join(folder, "missing");
    await expect(start({ ...env, [variable!]: missing })).rejects.toThrow(`${setting}: ${missing} does not exist`);
    const empty = await writePassword("empty", "");
    await expect(start({ ...env, [variable!]: empty })).rejects.toThrow(`${setting}: ${empty} is empty`);
  });

  it("is wanted in one place only", async () => {
    const file = await writePassword("any", "a-secret");
    const both = { SLUICE_REDIS_PASSWORD_FILE: file, REDIS_CLUSTER_PASSWORD: "other" };
    await expect(start(both)).rejects.toThrow("set one of the two");
    const stored = { SLUICE_STORE_PASSWORD_FILE: file, SLUICE_STORE_URL: "postgres://me:other@127.0.0.1/a" };
    await expect(start(stored)).rejects.toThrow("leave one of them out");
    const passwordless = { SLUICE_STORE_PASSWORD_FILE: file, SLUICE_STORE_URL: `sqlite:${join(folder, "store.db")}` };
    await expect(start(passwordless)).rejects.toThrow("the policy store is a file");
  });

  it("opens a policy store for a library as well", async () => {
    const url = `postgres://sluice@127.0.0.1:${postgres.port}/postgres`;
    await expect(openPolicyStore({ url, readPassword: async () => "wrong" })).rejects.toThrow("password");
    await (await openPolicyStore({ url, readPassword: async () => postgres.password })).close();
  });
});
