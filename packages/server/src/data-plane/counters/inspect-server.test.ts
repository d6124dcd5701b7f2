import { flavors, startServer } from "@sluice/test-servers";
import { describe, expect, it } from "vitest";
import { concernsAbout, inspectServer, parseInfo, parseShardName, type ServerFacts } from "./inspect-server.ts";

const fine: ServerFacts = {
  product: "valkey 8.0.1",
  version: [7, 2],
  clustered: false,
  replica: false,
  maxMemoryBytes: 1,
  evictionPolicy: "volatile-lru",
  evictedKeys: 0,
};

describe("a server", () => {
  it.each(flavors)("describes itself: %s", async (flavor) => {
    const server = await startServer({ flavor, args: ["--maxmemory", "100mb"] });
    try {
      const address = parseShardName(`${server.host}:${server.port}`);
      const facts = await inspectServer(address, { kind: "standalone", addresses: [address] }, 5_000);
      expect(facts).toMatchObject({
        product: expect.stringMatching(new RegExp(`^${flavor} \\d`)),
        clustered: false,
        replica: false,
        maxMemoryBytes: 100 * 1024 * 1024,
        evictionPolicy: "noeviction",
        evictedKeys: 0,
      });
      expect(concernsAbout(facts!, "standalone")).toEqual([]);
      await server.kill();
      expect(await inspectServer(address, { kind: "standalone", addresses: [address] }, 5_000)).toBeUndefined();
    } finally {
      await server.close();
    }
  });

  it("gives no reason for concern if all is well", () => {
    expect(concernsAbout(fine, "standalone")).toEqual([]);
    expect(concernsAbout(parseInfo(""), "standalone")).toEqual([]);
    expect(concernsAbout({ ...fine, maxMemoryBytes: 0, evictionPolicy: "allkeys-lru" }, "standalone")).toEqual([]);
    expect(concernsAbout({ ...fine, clustered: true }, "cluster")).toEqual([]);
  });

  it.each<[Partial<ServerFacts>, string]>([
    [{ version: [5, 0] }, "older than Redis 6.0"],
    [{ replica: true }, "is a replica"],
    [{ clustered: true }, "redis+cluster://"],
    [{ evictionPolicy: "allkeys-lru" }, "by allkeys-lru"],
    [{ evictionPolicy: "volatile-ttl" }, "by volatile-ttl"],
    [{ evictedKeys: 7 }, "forgotten 7 keys"],
  ])("gives reason for concern: %j", (facts, concern) => {
    expect(concernsAbout({ ...fine, ...facts }, "standalone")).toEqual([expect.stringContaining(concern)]);
  });

  it("is found by the name that shards go by", () => {
    expect(parseShardName("10.0.0.1:6379")).toEqual({ kind: "tcp", host: "10.0.0.1", port: 6379 });
    expect(parseShardName("[::1]:6379")).toEqual({ kind: "tcp", host: "::1", port: 6379 });
    expect(parseShardName("/run/valkey.sock")).toEqual({ kind: "unix", path: "/run/valkey.sock" });
  });
});
