import { describe, expect, it } from "vitest";
import { parseRedisNodes } from "./redis-nodes.ts";

const tcp = (host: string, port = 6379): object => ({ kind: "tcp", host, port });

describe("nodes in REDIS_CLUSTER_URL", () => {
  it.each([
    "a:7000,b:7001",
    "a:7000, b:7001,",
    "redis://a:7000,redis://b:7001",
    "redis://a:7000,b:7001",
    "valkey://a:7000/0,valkey://b:7001",
    "redis+cluster://a:7000,b:7001",
  ])("are a cluster if there are several: %s", (text) => {
    const { servers, ofUnknownKind } = parseRedisNodes(text);
    expect(ofUnknownKind).toBe(false);
    expect(servers).toMatchObject({ kind: "cluster", addresses: [tcp("a", 7000), tcp("b", 7001)] });
    expect(servers.database).toBeUndefined();
  });

  it.each(["a", "a:6379", "redis://a", "redis://a:6379"])("are of a kind that must be asked for: %s", (text) => {
    expect(parseRedisNodes(text)).toMatchObject({ servers: { addresses: [tcp("a")] }, ofUnknownKind: true });
  });

  it("are believed if they say what they are", () => {
    expect(parseRedisNodes("unix:///run/valkey.sock")).toMatchObject({
      servers: { kind: "standalone" },
      ofUnknownKind: false,
    });
    expect(parseRedisNodes("redis+sentinel://a,b/main")).toMatchObject({
      servers: { kind: "sentinel", masterName: "main", addresses: [tcp("a", 26_379), tcp("b", 26_379)] },
      ofUnknownKind: false,
    });
    expect(parseRedisNodes("redis+cluster://a")).toMatchObject({ servers: { kind: "cluster" }, ofUnknownKind: false });
  });

  it("keep user, password, TLS and database", () => {
    expect(parseRedisNodes("rediss://u:p%2C,x@a/3").servers).toMatchObject({
      username: "u",
      password: "p,,x",
      tls: {},
      database: 3,
      addresses: [tcp("a")],
    });
    expect(parseRedisNodes("rediss://u:p@a,rediss://u:p@b").servers).toMatchObject({ username: "u", password: "p" });
  });

  it.each([
    ["redis://u:p@a,redis://u:q@b", "different users or passwords"],
    ["redis://a,rediss://b", "with TLS and nodes without"],
    ["redis://a,unix:///b", "of different kinds"],
    ["http://a", "is not an address"],
    ["redis://u:secret@a b", "is not"],
    [",", "is not"],
  ])("that make no sense are refused, without repeating them: %s", (text, message) => {
    expect(() => parseRedisNodes(text)).toThrow(message);
    expect(() => parseRedisNodes(text)).not.toThrow(/secret/);
  });
});
