import { beforeEach, describe, expect, it } from "vitest";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { createRedisLog, type RedisLog, withoutSecrets } from "./redis-log.ts";

let lines: { level: string; event: string; fields: Record<string, unknown> }[];
let nowMs: number;
let told: RedisLog;

beforeEach(() => {
  lines = [];
  nowMs = 0;
  const log = Object.fromEntries(
    ["debug", "info", "warn", "error"].map((level) => [
      level,
      (event: string, fields: Record<string, unknown>) => lines.push({ level, event, fields }),
    ]),
  ) as unknown as Logger;
  told = createRedisLog(
    log,
    () => ["hunter2"],
    () => nowMs,
  );
});

const lost = (message: string, shard = "a:1"): void =>
  told.onEvent({ kind: "disconnected", shard, error: new Error(message) });
const levels = (): string[] => lines.map(({ level }) => level);

describe("the log of counter servers", () => {
  it("reports a loss once, however often connecting fails, again when the reason changes, and the return", () => {
    lost("Socket closed unexpectedly");
    for (let i = 0; i < 50; i++) lost("connect ECONNREFUSED 127.0.0.1:1");
    lost("WRONGPASS invalid username-password pair or user is disabled.");
    told.onEvent({ kind: "connected", shard: "a:1" });
    lost("connect ECONNREFUSED 127.0.0.1:1");
    expect(levels()).toEqual(["error", "error", "info", "error"]);
    expect(lines[1]?.fields).toMatchObject({ shard: "a:1", advice: expect.stringContaining("REDIS_CLUSTER_PASSWORD") });
  });

  it("gives a reason for an error that has none", () => {
    const refused = new AggregateError(
      [new Error("connect ECONNREFUSED ::1:1"), new Error("connect ECONNREFUSED")],
      "",
    );
    told.onEvent({ kind: "disconnected", shard: "a:1", error: refused });
    expect(lines[0]?.fields.reason).toBe("connect ECONNREFUSED ::1:1");
  });

  it("never reveals a password", () => {
    lost("AUTH hunter2 was refused");
    told.onEvent({ kind: "failed", shard: "a:1", error: new Error("ERR AUTH hunter2") });
    expect(levels()).toEqual(["error", "error"]);
    expect(JSON.stringify(lines)).not.toContain("hunter2");
  });

  it("keeps a bounded part of a reason of any length, and never a part of a password", () => {
    for (const before of [0, 1_990, 1_997, 1_999, 2_000, 2_003]) {
      const reason = `${"x".repeat(before)}hunter2${" and so on".repeat(500_000)}`;
      lost(reason, `shard-${before}`);
      told.onEvent({ kind: "failed", shard: "a:1", error: new Error(`E${"R".repeat(before % 7)} ${reason}`) });
    }
    for (const { fields } of lines) {
      expect(String(fields.reason).length).toBeLessThan(2_050);
      expect(String(fields.reason)).not.toMatch(/hunt/);
      expect(String(fields.reason)).toMatch(/… \(\d+ characters\)$/);
    }
    expect(lines.length).toBeGreaterThan(6);
  });

  it("shows no rest of a password that begins with another", () => {
    expect(withoutSecrets("AUTH hunter2-more", ["hunter2", "hunter2-more", ""])).toBe("AUTH [redacted]");
  });

  it("reports breakers and moves", () => {
    for (const state of ["open", "half_open", "closed"] as const)
      told.onEvent({ kind: "breaker", shard: "a:1", state, why: "because" });
    told.onEvent({ kind: "moved", description: "slot 7 is held by b:1 now" });
    expect(levels()).toEqual(["error", "debug", "info", "info"]);
  });

  it("does not fill up with flapping servers, and says how much it left out", () => {
    for (let i = 0; i < 100; i++) {
      lost(`lost for the time number ${i}`);
      told.onEvent({ kind: "connected", shard: "a:1" });
    }
    expect(lines).toHaveLength(30);
    nowMs = 60_000;
    lost("once more");
    expect(lines.slice(30)).toMatchObject([
      { level: "warn", fields: { leftOut: 170 } },
      { fields: { reason: "once more" } },
    ]);
  });

  it("reports a server's refusals once a minute, and nothing that events report", () => {
    const refused = (code: string): void =>
      told.onEvent({ kind: "failed", shard: "a:1", error: new Error(`${code} no`) });
    for (let i = 0; i < 5; i++) refused("OOM");
    refused("NOPERM");
    nowMs = 60_000;
    refused("OOM");
    told.onEvent({ kind: "failed", shard: "a:1", error: new Error("Socket closed unexpectedly") });
    expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
      ["error", { shard: "a:1", reason: "OOM no" }],
      ["error", { shard: "a:1", reason: "NOPERM no" }],
      ["error", { shard: "a:1", reason: "OOM no", sinceThen: 4 }],
    ]);
  });
});
