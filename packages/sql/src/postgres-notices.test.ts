import { createFaultyProxy, createPostgresProxy, startPostgres, type TestPostgres } from "@sluice/test-servers";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { generationChannel } from "./generation-channel.ts";
import { openPolicyStore } from "./open-policy-store.ts";
import type { PolicyStore } from "./policy-store.ts";
import { openPostgresListener, type PostgresListenerOptions } from "./postgres-notices.ts";

const closing: { close(): Promise<void> }[] = [];
let server: TestPostgres;

beforeAll(async () => {
  server = await startPostgres();
}, 60_000);

afterEach(async () => {
  await Promise.all(closing.splice(0).map((each) => each.close()));
});

afterAll(() => server.close());

function listen(url: string, options: Partial<PostgresListenerOptions> = {}) {
  const heard: string[] = [];
  const states: string[] = [];
  const listener = openPostgresListener({
    url,
    channel: generationChannel,
    onMessage: (payload) => heard.push(payload),
    onState: (state) => states.push(state),
    ...options,
  });
  closing.push(listener);
  return { heard, states, listener };
}

async function open(url: string, notify?: boolean): Promise<PolicyStore> {
  const store = await openPolicyStore({ url, notify });
  closing.push(store);
  return store;
}

function bump(store: PolicyStore): Promise<number> {
  return store.change((change) => change.nextGeneration());
}

describe("a listener", () => {
  it("receives each committed generation, and none that was undone", async () => {
    const url = await server.createDatabase();
    const store = await open(url);
    const { heard, states } = listen(url);
    await expect.poll(() => states).toEqual(["listening"]);
    await bump(store);
    await store.change((change) => change.nextGeneration(), { dryRun: true });
    await expect(
      store.change(async (change) => {
        await change.nextGeneration();
        throw new Error("no");
      }),
    ).rejects.toThrow("no");
    await bump(await open(url));
    await expect.poll(() => heard).toEqual(["1", "2"]);
  });

  it("receives nothing if announcements are turned off", async () => {
    const url = await server.createDatabase();
    const { heard, states } = listen(url);
    await expect.poll(() => states).toEqual(["listening"]);
    await bump(await open(url, false));
    await bump(await open(url));
    await expect.poll(() => heard).toEqual(["2"]);
  });

  it("waits for a server that is not up yet, and listens again when one comes back", async () => {
    const fragile = await startPostgres();
    closing.push(fragile);
    await fragile.stop();
    const { heard, states } = listen(fragile.url);
    await expect.poll(() => states, { timeout: 30_000 }).toEqual(["lost"]);
    await fragile.start();
    await expect.poll(() => states, { timeout: 30_000 }).toEqual(["lost", "listening"]);
    await fragile.stop("SIGKILL");
    await expect.poll(() => states, { timeout: 30_000 }).toEqual(["lost", "listening", "lost"]);
    await fragile.start();
    await expect.poll(() => states, { timeout: 30_000 }).toEqual(["lost", "listening", "lost", "listening"]);
    await bump(await open(fragile.url));
    await expect.poll(() => heard).toEqual(["1"]);
  }, 60_000);

  it("notices a network that drops everything, and listens again when it is back", async () => {
    const url = await server.createDatabase();
    const proxy = await createFaultyProxy({ host: "127.0.0.1", port: server.port });
    const { heard, states } = listen(url.replace(`:${server.port}/`, `:${proxy.port}/`), {
      probeEveryMs: 100,
      answerWithinMs: 1_000,
    });
    closing.push(proxy);
    await expect.poll(() => states).toEqual(["listening"]);
    proxy.blackhole();
    await expect.poll(() => states, { timeout: 30_000 }).toEqual(["listening", "lost"]);
    proxy.heal();
    await expect.poll(() => states, { timeout: 30_000 }).toEqual(["listening", "lost", "listening"]);
    await bump(await open(url));
    await expect.poll(() => heard).toEqual(["1"]);
  });

  it.each([
    ["an error", { as: "error", severity: "ERROR", code: "42601", message: 'at or near "listen": syntax error' }],
    [
      "a notice along with success",
      { as: "notice", severity: "ERROR", code: "0A000", message: "unimplemented: CRDB does not support LISTEN" },
    ],
  ] as const)("is refused, and stops trying, if the server has no LISTEN and says so by %s", async (_how, reply) => {
    const proxy = await createPostgresProxy({ host: "127.0.0.1", port: server.port }, (statement) =>
      statement.startsWith("listen") ? reply : undefined,
    );
    closing.push(proxy);
    const told: (readonly [string, string | undefined])[] = [];
    const onState = (state: string, why?: string): void => void told.push([state, why]);
    const url = server.url.replace(`:${server.port}/`, `:${proxy.port}/`);
    listen(url, { onState, probeEveryMs: 10, applicationName: "refused-listener" });
    await expect.poll(() => told).toEqual([["refused", reply.message]]);
    const count = "select count(*) from pg_stat_activity where application_name = 'refused-listener'";
    await expect.poll(() => server.psql(count)).toBe("0");
    expect([told.length, proxy.opened, proxy.answered.length]).toEqual([1, 1, 1]);
  });

  it("leaves no connection behind when it is closed, even while it connects", async () => {
    const url = await server.createDatabase();
    const { states, listener } = listen(url, { applicationName: "closed-listener" });
    await listen(url, { applicationName: "closed-listener" }).listener.close();
    await expect.poll(() => states).toEqual(["listening"]);
    await listener.close();
    await listener.close();
    const count = "select count(*) from pg_stat_activity where application_name = 'closed-listener'";
    await expect.poll(() => server.psql(count)).toBe("0");
    expect(states).toEqual(["listening"]);
  });

  it("listens on any channel name it is given", async () => {
    const channel = 'Odd "name"; --';
    const { heard, states } = listen(server.url, { channel });
    await expect.poll(() => states).toEqual(["listening"]);
    await server.psql(`select pg_notify('${channel}', 'hello')`);
    await expect.poll(() => heard).toEqual(["hello"]);
  });
});
