import { setTimeout as sleep } from "node:timers/promises";
import { startPostgres, startServer, type TestPostgres, type TestServer } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Sluice } from "../restart/start-sluice.ts";
import {
  createFleet,
  decide,
  type Fleet,
  patience,
  readStatus,
  steer,
  steerWell,
  twoPolicies,
  untilAll,
} from "./fleet.ts";

let postgres: TestPostgres;
let valkey: TestServer;
let fleet: Fleet;
/** The node that operators use, and one that only decides. */
let steering: Sluice;
let deciding: Sluice;

beforeAll(async () => {
  [postgres, valkey] = await Promise.all([startPostgres(), startServer({ flavor: "valkey" })]);
  fleet = await createFleet({ SLUICE_STORE_URL: postgres.url, SLUICE_REDIS_URL: valkey.url, SLUICE_STORE_GRACE: "3s" });
  steering = await fleet.start("steering");
  deciding = await fleet.start("deciding", "--admin-port", "off");
  await steerWell(steering, fleet, "POST", "/import", twoPolicies(1));
  await untilAll([steering, deciding], { limit: 1 });
}, 180_000);

afterAll(async () => {
  await fleet?.close();
  await Promise.all([postgres?.close(), valkey?.close()]);
});

const readStoreState = async (node: Sluice): Promise<Record<string, unknown>> => (await readStatus(node)).store;

const keptOut = { allowed: false, reason: "blocked", retry_after_ms: expect.any(Number) };

describe("a fleet whose store and control plane fail", () => {
  it("continues to decide when the control plane is killed, and follows the next one", async () => {
    await steering.kill();
    expect(await decide(deciding)).toMatchObject({ allowed: true, limit: 1 });
    steering = await fleet.start("steering");
    await steerWell(steering, fleet, "POST", "/import", twoPolicies(2));
    await untilAll([steering, deciding], { limit: 2 });
  }, 120_000);

  it("applies a disabled policy and a blocked subject on every node", async () => {
    await steerWell(steering, fleet, "PUT", "/policies/q/disable", { for_ms: 3_600_000, why: "a drill" });
    await steerWell(steering, fleet, "PUT", "/subjects/user/kept-out/block", { for_ms: 3_600_000, why: "a drill" });
    await untilAll([steering, deciding], { allowed: true, reason: "unlimited", policy: "q" }, "q");
    for (const node of [steering, deciding])
      await vi.waitFor(async () => expect(await decide(node, "p", "kept-out")).toMatchObject(keptOut), patience);
  }, 120_000);

  it("continues to decide when PostgreSQL is killed, is ready, and says how long it was unavailable", async () => {
    await postgres.stop("SIGKILL");
    await vi.waitFor(async () => expect((await readStoreState(deciding)).state).toBe("away"), patience);
    expect(await deciding.isReady()).toBe(true);
    expect(await readStatus(deciding)).toMatchObject({
      status: "degraded",
      detail: expect.stringContaining("the policy store cannot be reached, so its generation"),
    });
    expect(await decide(deciding)).toMatchObject({ allowed: true, limit: 2 });
    const { status, body } = await steer(steering, fleet, "POST", "/import", twoPolicies(3));
    expect([status, body.code]).toEqual([503, "policy_store_unavailable"]);
    await vi.waitFor(async () => expect((await readStoreState(deciding)).state).toBe("expired"), patience);
    expect(deciding.log).toContain("unreachable for longer than its grace period");
    expect(await deciding.isReady()).toBe(true);
    expect(await decide(deciding)).toMatchObject({ allowed: true, limit: 2 });
  }, 120_000);

  it("restarts warm meanwhile, and says so", async () => {
    await deciding.kill();
    deciding = await fleet.start("deciding", "--admin-port", "off");
    expect(await deciding.isReady()).toBe(true);
    expect(await decide(deciding)).toMatchObject({ allowed: true, limit: 2 });
    expect(await readStoreState(deciding)).toMatchObject({
      source: "snapshot",
      state: expect.stringMatching(/away|expired/),
    });
    expect(deciding.log).toContain("policies from the snapshot decide");
    expect(await decide(deciding, "p", "kept-out")).toMatchObject(keptOut);
    expect(await decide(deciding, "q")).toMatchObject({ allowed: true, reason: "unlimited" });
    expect(await readStoreState(deciding)).toMatchObject({ disabled: [{ policy: "q", mode: "allow" }], blocked: 1 });
    await expect(fleet.start("new")).rejects.toThrow("with --policy-snapshot a server can start without it");
  }, 120_000);

  it("catches up when PostgreSQL is back", async () => {
    await postgres.start();
    await vi.waitFor(async () => {
      expect(await readStoreState(steering)).toMatchObject({ state: "current" });
      expect(await readStoreState(deciding)).toMatchObject({ state: "current", source: "store" });
    }, patience);
    await steerWell(steering, fleet, "POST", "/import", twoPolicies(4));
    await untilAll([steering, deciding], { limit: 4 });
    await vi.waitFor(
      async () => expect((await readStoreState(deciding)).push).toEqual({ kind: "postgres", connected: true }),
      patience,
    );
  }, 120_000);

  it("obeys a kill switch until it ends, with control plane and store gone", async () => {
    await steerWell(steering, fleet, "PUT", "/kill-switch", { mode: "closed", for_ms: 8_000, why: "a drill" });
    await untilAll([deciding], { allowed: false, degraded: "kill_switch" });
    const { until_ms: untilMs } = (await readStoreState(deciding)).kill_switch as { until_ms: number };
    await Promise.all([steering.kill(), postgres.stop("SIGKILL")]);
    for (let over = false; !over; await sleep(5)) {
      const askedMs = Date.now();
      const { allowed } = await decide(deciding);
      if (Date.now() < untilMs) expect(allowed).toBe(false);
      over = askedMs >= untilMs;
      if (over) expect(allowed).toBe(true);
    }
    expect((await readStoreState(deciding)).kill_switch).toBeUndefined();
  }, 120_000);
});
