import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startPostgres, type TestPostgres } from "@sluice/test-servers";
import { afterEach, describe, expect, it } from "vitest";

const started: TestPostgres[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.close()));
});

async function start(options: Parameters<typeof startPostgres>[0] = {}): Promise<TestPostgres> {
  const server = await startPostgres(options);
  started.push(server);
  return server;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("a PostgreSQL for tests", { timeout: 60_000 }, () => {
  it("keeps committed data when it is killed, and accepts new databases", async () => {
    const server = await start();
    const url = await server.createDatabase();
    expect(await server.createDatabase()).not.toBe(url);
    await server.psql("create table t (n int); insert into t values (7)", url);
    await server.stop("SIGKILL");
    await expect(server.psql("select n from t", url)).rejects.toThrow();
    await server.start();
    expect(await server.psql("select n from t", url)).toBe("7");
  });

  it("wants its password, takes settings, and sorts texts as people do", async () => {
    const server = await start({ settings: { max_connections: "17" } });
    const wrong = server.url.replace(server.password, "another");
    await expect(server.psql("select 1", wrong)).rejects.toThrow(/password authentication failed/);
    expect(await server.psql("show max_connections")).toBe("17");
    expect(await server.psql("select 'a' < 'B'")).toBe("t");
  });

  it("is gone after close, and so is its folder", async () => {
    const server = await start();
    const { pid, folder } = server;
    expect([isRunning(pid), existsSync(folder)]).toEqual([true, true]);
    await server.close();
    await server.close();
    expect([isRunning(pid), existsSync(folder)]).toEqual([false, false]);
  });

  it("is gone with its folder when the process that started it was killed", async () => {
    const index = fileURLToPath(new URL("./src/index.ts", import.meta.url));
    const script = `
      const { startPostgres } = await import(process.argv[1]);
      const server = await startPostgres();
      process.stdout.write(JSON.stringify({ pid: server.pid, folder: server.folder }));
      setInterval(() => undefined, 1_000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script, `file://${index}`]);
    const [printed] = (await once(child.stdout, "data")) as [Buffer];
    const { pid, folder } = JSON.parse(String(printed)) as { pid: number; folder: string };
    expect([isRunning(pid), existsSync(folder)]).toEqual([true, true]);
    child.kill("SIGKILL");
    await expect.poll(() => [isRunning(pid), existsSync(folder)], { timeout: 30_000 }).toEqual([false, false]);
  });

  it("says with the end of its log why it does not start", async () => {
    await expect(start({ settings: { no_such_setting: "1" } })).rejects.toThrow(/did not start.*no_such_setting/s);
  });
});
