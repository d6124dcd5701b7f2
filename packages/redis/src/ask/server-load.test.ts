import { flavors, startServer } from "@sluice/test-servers";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { describe, expect, it } from "vitest";
import { RedisCounters } from "../redis-counters.ts";
import { LoadSampler } from "./server-load.ts";

const render = (fields: Readonly<Record<string, number>>): string =>
  `# Section\r\n${Object.entries(fields)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join("")}`;

describe("the load of a server", () => {
  it("is the share of a core that its main thread used between two samples", () => {
    const sampler = new LoadSampler();
    const info = (user: number): string =>
      render({ used_cpu_user: 99, used_cpu_user_main_thread: user, used_cpu_sys_main_thread: 1, evicted_keys: 3 });
    expect(sampler.read(info(10), 5_000)).toMatchObject({ cpu: undefined, evictedKeys: 3 });
    expect(sampler.read(info(22), 20_000).cpu).toBeCloseTo(0.8);
    // A server that was replaced begins at 0 again.
    expect(sampler.read(info(1), 35_000).cpu).toBeUndefined();
    expect(sampler.read(info(1.5), 36_000).cpu).toBeCloseTo(0.5);
  });

  it("is that of the whole process on servers that know no more", () => {
    const sampler = new LoadSampler();
    sampler.read(render({ used_cpu_user: 1, used_cpu_sys: 1 }), 0);
    expect(sampler.read(render({ used_cpu_user: 2, used_cpu_sys: 1.5 }), 10_000).cpu).toBeCloseTo(0.15);
  });

  it("names replicas that are online", () => {
    const replicas = [
      "role:master",
      "connected_slaves:3",
      "slave0:ip=10.0.0.2,port=6379,state=online,offset=14,lag=0,type=replica",
      "slave1:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0",
      "slave2:ip=fd00::2,port=6380,state=online,offset=14,lag=1",
      "slave_expires_tracked_keys:0",
    ];
    expect(new LoadSampler().read(replicas.join("\r\n"), 0).replicas).toEqual(["10.0.0.2:6379", "[fd00::2]:6380"]);
  });

  it.each(flavors)("names a replica of a real server: %s", async (flavor) => {
    const primary = await startServer({ flavor });
    const replica = await startServer({ flavor, args: ["--replicaof", "127.0.0.1", String(primary.port)] });
    const store = new RedisCounters({ servers: primary.url, deadlineMs: 10_000 });
    try {
      await store.connected();
      const find = () => {
        store.sampleLoad();
        return store.stats.shards[0]!.load?.replicas;
      };
      await expect.poll(find, { timeout: 30_000 }).toEqual([`127.0.0.1:${replica.port}`]);
    } finally {
      await store.close();
      await Promise.all([replica.close(), primary.close()]);
    }
  });

  it.each(flavors)("is sampled from a real server, with its evictions: %s", async (flavor) => {
    const args = ["--maxmemory", "3mb", "--maxmemory-policy", "volatile-lru"];
    const server = await startServer({ flavor, args });
    const store = new RedisCounters({ servers: server.url, deadlineMs: 10_000 });
    try {
      await store.connected();
      const load = () => {
        store.sampleLoad();
        return store.stats.shards[0]!.load;
      };
      await expect.poll(load).toMatchObject({ maxMemoryBytes: 3 * 1024 * 1024, evictedKeys: 0 });
      const limit = compileTestLimit({ algorithm: "fixed_window", windows: [testWindow(5, 3_600_000)] });
      for (let round = 0; round < 60; round++) {
        const subjects = Array.from({ length: 500 }, (_, index) => `a-subject-of-some-length-${round}-${index}`);
        await Promise.all(subjects.map((subject) => store.take([resolvedLimit(limit, subject)])));
      }
      await expect.poll(() => load()?.evictedKeys).toBeGreaterThan(0);
      expect(load()!.memoryBytes).toBeGreaterThan(1_000_000);
      await expect.poll(() => load()?.cpu).toBeGreaterThan(0);
      await server.kill();
      await expect.poll(load).toBeUndefined();
    } finally {
      await store.close();
      await server.close();
    }
  });
});
