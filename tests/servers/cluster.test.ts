import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findOwner, findOwners, parseClusterView } from "./src/cluster-view.ts";
import { flavors, startCluster, type TestCluster, type TestServer } from "./src/index.ts";

describe.each(flavors)("a cluster of %s", (flavor) => {
  let cluster: TestCluster;

  beforeAll(async () => {
    cluster = await startCluster({ flavor, replicas: 1, nodeTimeoutMs: 500 });
  }, 30_000);

  afterAll(() => cluster.close());

  async function findSlot(key: string): Promise<number> {
    return Number(await cluster.nodes[0]!.command("CLUSTER", "KEYSLOT", key));
  }

  function anotherPrimary(owner: TestServer): TestServer {
    return cluster.nodes.slice(0, 3).find((node) => node !== owner)!;
  }

  it("has every slot at one of three primaries, each with a replica", async () => {
    const [first, second, third] = cluster.nodes;
    const owners = await Promise.all([0, 5460, 5461, 10_921, 10_922, 16_383].map((slot) => cluster.ownerOf(slot)));
    expect(owners.map((owner) => cluster.nodes.indexOf(owner))).toEqual([0, 0, 1, 1, 2, 2]);
    const replicas = await Promise.all([first!, second!, third!].map((node) => cluster.replicaOf(node)));
    expect(replicas).toEqual(cluster.nodes.slice(3));
    expect(cluster.urls).toEqual(cluster.nodes.map((node) => node.url));
  });

  it("answers for a key at its owner alone", async () => {
    const slot = await findSlot("fruit");
    const owner = await cluster.ownerOf(slot);
    const other = anotherPrimary(owner);
    expect(await owner.command("SET", "fruit", "plum")).toBe("OK");
    await expect(other.command("GET", "fruit")).rejects.toThrow(`MOVED ${slot} ${owner.host}:${owner.port}`);
  });

  it("moves a slot with its keys", async () => {
    const slot = await findSlot("tree");
    const from = await cluster.ownerOf(slot);
    const to = anotherPrimary(from);
    for (let index = 0; index < 250; index += 1) await from.command("SET", `{tree}${index}`, index);
    await cluster.migrateSlot(slot, to);
    expect(await cluster.ownerOf(slot)).toBe(to);
    expect(await to.command("GET", "{tree}249")).toBe("249");
    expect(await to.command("CLUSTER", "COUNTKEYSINSLOT", slot)).toBe(250);
    await expect(from.command("GET", "{tree}249")).rejects.toThrow(`MOVED ${slot} ${to.host}:${to.port}`);
  });

  it("sends clients on key by key while a slot moves", async () => {
    const slot = await findSlot("river");
    const from = await cluster.ownerOf(slot);
    const to = anotherPrimary(from);
    await from.command("MSET", "{river}1", "here", "{river}2", "there");
    await cluster.beginMigration(slot, to);
    await cluster.moveKeys(slot, to, ["{river}2"]);
    expect(await from.command("GET", "{river}1")).toBe("here");
    await expect(from.command("GET", "{river}2")).rejects.toThrow(`ASK ${slot} ${to.host}:${to.port}`);
    await expect(from.command("MGET", "{river}1", "{river}2")).rejects.toThrow("TRYAGAIN");
    expect(await to.command("ASKING")).toBe("OK");
    expect(await to.command("GET", "{river}2")).toBe("there");
    await cluster.finishMigration(slot, to);
    expect(await to.command("MGET", "{river}1", "{river}2")).toEqual(["here", "there"]);
    expect(await cluster.ownerOf(slot)).toBe(to);
  });

  it("gives the slots of a dead primary to its replica, and takes the dead one back as a replica", async () => {
    const slot = await findSlot("mountain");
    const dead = await cluster.ownerOf(slot);
    const heir = await cluster.replicaOf(dead);
    await dead.kill();
    await cluster.waitUntilOk();
    expect(await cluster.ownerOf(slot)).toBe(heir);
    expect(await heir?.command("SET", "mountain", "high")).toBe("OK");
    await dead.restart();
    await expect.poll(() => cluster.replicaOf(heir!), { timeout: 30_000 }).toBe(dead);
    await cluster.waitUntilOk();
  });

  it("leaves nothing behind when it is closed", async () => {
    await cluster.close();
    expect(cluster.nodes).toHaveLength(6);
    expect(cluster.nodes.filter((node) => node.state !== "stopped" || existsSync(node.folder))).toEqual([]);
  });
});

describe("a node's view of its cluster", () => {
  const view = parseClusterView(
    [
      "aaa 127.0.0.1:7000@17000,host myself,master - 0 0 1 connected 0-99 101 [7->-bbb]",
      "bbb 127.0.0.1:7001@17001 master,fail? - 0 1 2 connected 100 102-16383",
      "ccc 127.0.0.1:7002@17002 slave aaa 0 1 1 connected",
      "",
    ].join("\n"),
  );

  it("contains each node's address, and each replica's primary", () => {
    expect(view.map(({ id, port, primaryId }) => [id, port, primaryId])).toEqual([
      ["aaa", 7000, undefined],
      ["bbb", 7001, undefined],
      ["ccc", 7002, "aaa"],
    ]);
    expect(view[1]?.flags).toEqual(["master", "fail?"]);
  });

  it("contains the owner of each slot, also while it moves", () => {
    expect([7, 100, 101, 16_383].map((slot) => findOwner(view, slot)?.id)).toEqual(["aaa", "bbb", "aaa", "bbb"]);
    expect(findOwner(view, 16_384)).toBeUndefined();
  });

  it("equals another in which every slot has the same owner", () => {
    expect(findOwners(view.toReversed())).toBe(findOwners(view));
    expect(findOwners(parseClusterView("aaa 127.0.0.1:7000@17000 master - 0 0 1 connected 0-16383"))).not.toBe(
      findOwners(view),
    );
  });
});
