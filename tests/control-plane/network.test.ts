import { createFaultyProxy, type FaultyProxy, startPostgres, type TestPostgres } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Sluice } from "../restart/start-sluice.ts";
import { createFleet, decide, type Fleet, patience, readStatus, steerWell, twoPolicies, untilAll } from "./fleet.ts";

let postgres: TestPostgres;
let proxy: FaultyProxy;
let fleet: Fleet;
/** A node next to the store, and one with a bad network path to it. */
let near: Sluice;
let far: Sluice;

beforeAll(async () => {
  postgres = await startPostgres();
  proxy = await createFaultyProxy({ host: "127.0.0.1", port: postgres.port });
  fleet = await createFleet({ SLUICE_STORE_URL: postgres.url });
  near = await fleet.start("near");
  const url = new URL(postgres.url);
  url.port = String(proxy.port);
  far = await fleet.start("far", "--store", url.href);
  await steerWell(near, fleet, "POST", "/import", twoPolicies(1));
  await untilAll([near, far], { limit: 1 });
}, 180_000);

afterAll(async () => {
  await fleet?.close();
  await Promise.all([proxy?.close(), postgres?.close()]);
});

const readStoreState = async (node: Sluice): Promise<Record<string, unknown>> => (await readStatus(node)).store;

describe("a node whose network path to the store drops everything", () => {
  it("notices, continues to decide, and catches up when the path is restored", async () => {
    proxy.blackhole();
    await steerWell(near, fleet, "POST", "/import", twoPolicies(2));
    await untilAll([near], { limit: 2 });
    await vi.waitFor(async () => expect((await readStoreState(far)).state).toBe("away"), patience);
    expect(await far.isReady()).toBe(true);
    expect(await decide(far)).toMatchObject({ allowed: true, limit: 1 });
    proxy.heal();
    await untilAll([far], { limit: 2 });
    await vi.waitFor(async () => expect((await readStoreState(far)).state).toBe("current"), patience);
  }, 180_000);

  it("obeys the kill switch, although its connection is dead and it has not noticed yet", async () => {
    await steerWell(near, fleet, "PUT", "/kill-switch", { mode: "closed", for_ms: 3_600_000, why: "a drill" });
    await untilAll([near, far], { allowed: false, degraded: "kill_switch" });
    await steerWell(near, fleet, "DELETE", "/kill-switch?why=over");
    await untilAll([near, far], { allowed: true });
  }, 120_000);

  it("stops in any case", async () => {
    proxy.blackhole();
    await vi.waitFor(async () => expect((await readStoreState(far)).state).toBe("away"), patience);
    expect(await far.stop()).toBe(0);
  }, 120_000);
});
