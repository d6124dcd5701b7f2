import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { flavors, startSentinel } from "./src/index.ts";

describe.each(flavors)("%s under sentinels", (flavor) => {
  it("gets another primary when its own dies, which comes back as a replica, and leaves nothing behind", async () => {
    const sentinel = await startSentinel({ flavor, downAfterMs: 700 });
    try {
      const old = await sentinel.primary();
      expect(old).toBe(sentinel.servers[0]);
      await old.command("SET", "key", "value");
      expect(await old.command("WAIT", 1, 5_000)).toBe(1);

      await old.kill();
      const next = await sentinel.waitForNewPrimary(old);
      expect(next).toBe(sentinel.servers[1]);
      expect(await sentinel.primary()).toBe(next);
      expect(await next.command("GET", "key")).toBe("value");
      expect(await next.command("SET", "key", "other")).toBe("OK");

      await old.restart();
      await expect.poll(async () => (await old.command("ROLE")) as unknown[], { timeout: 30_000 }).toContain("slave");
    } finally {
      await sentinel.close();
    }
    const all = [...sentinel.servers, ...sentinel.sentinels];
    expect(all).toHaveLength(5);
    expect(all.filter((server) => server.state !== "stopped" || existsSync(server.folder))).toEqual([]);
  });
});
