import { inspect } from "node:util";
import { SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import { parseRedisUrl, type RedisServers, renderServers } from "./redis-servers.ts";

const tcp = (host: string, port: number): RedisServers["addresses"][number] => ({ kind: "tcp", host, port });

const understood: readonly (readonly [url: string, servers: RedisServers])[] = [
  ["redis://h", { kind: "standalone", addresses: [tcp("h", 6379)] }],
  ["valkey://h", { kind: "standalone", addresses: [tcp("h", 6379)] }],
  ["redis://h:1", { kind: "standalone", addresses: [tcp("h", 1)] }],
  ["redis://h:65535/", { kind: "standalone", addresses: [tcp("h", 65_535)] }],
  ["redis://my_host-1.example:7/15", { kind: "standalone", addresses: [tcp("my_host-1.example", 7)], database: 15 }],
  ["redis://h/0", { kind: "standalone", addresses: [tcp("h", 6379)], database: 0 }],
  ["redis://10.0.0.1", { kind: "standalone", addresses: [tcp("10.0.0.1", 6379)] }],
  ["redis://[::1]", { kind: "standalone", addresses: [tcp("::1", 6379)] }],
  ["redis://[fe80::1:2]:8/3", { kind: "standalone", addresses: [tcp("fe80::1:2", 8)], database: 3 }],
  ["rediss://h", { kind: "standalone", addresses: [tcp("h", 6379)], tls: {} }],
  ["valkeys://h:2", { kind: "standalone", addresses: [tcp("h", 2)], tls: {} }],
  ["redis://u:p@h", { kind: "standalone", addresses: [tcp("h", 6379)], username: "u", password: "p" }],
  ["redis://u@h", { kind: "standalone", addresses: [tcp("h", 6379)], username: "u" }],
  ["redis://:p@h", { kind: "standalone", addresses: [tcp("h", 6379)], password: "p" }],
  ["redis://@h", { kind: "standalone", addresses: [tcp("h", 6379)] }],
  ["redis://u:@h", { kind: "standalone", addresses: [tcp("h", 6379)], username: "u", password: "" }],
  [
    "redis://us%3Aer:p%40%2F%25%3Fw%C3%BC:r@h",
    { kind: "standalone", addresses: [tcp("h", 6379)], username: "us:er", password: "p@/%?wü:r" },
  ],
  ["unix:///run/valkey.sock", { kind: "standalone", addresses: [{ kind: "unix", path: "/run/valkey.sock" }] }],
  ["unix:///run/my%20socket", { kind: "standalone", addresses: [{ kind: "unix", path: "/run/my socket" }] }],
  [
    "unix://u:p%40@/run/s",
    { kind: "standalone", addresses: [{ kind: "unix", path: "/run/s" }], username: "u", password: "p@" },
  ],
  ["redis+cluster://h", { kind: "cluster", addresses: [tcp("h", 6379)] }],
  ["redis+cluster://a:1,b,[::1]:2/0", { kind: "cluster", addresses: [tcp("a", 1), tcp("b", 6379), tcp("::1", 2)] }],
  ["rediss+cluster://:p@a/", { kind: "cluster", addresses: [tcp("a", 6379)], password: "p", tls: {} }],
  ["valkeys+cluster://a", { kind: "cluster", addresses: [tcp("a", 6379)], tls: {} }],
  ["redis+sentinel://a,b:1/main", { kind: "sentinel", addresses: [tcp("a", 26_379), tcp("b", 1)], masterName: "main" }],
  ["redis+sentinel://a/m%2Fn/", { kind: "sentinel", addresses: [tcp("a", 26_379)], masterName: "m/n" }],
  [
    "rediss+sentinel://u:p@a/main/2",
    {
      kind: "sentinel",
      addresses: [tcp("a", 26_379)],
      username: "u",
      password: "p",
      masterName: "main",
      tls: {},
      database: 2,
    },
  ],
];

const refused: readonly (readonly [url: string, because: string])[] = [
  ["", "is not an address that is understood"],
  ["localhost:6379", "is not an address that is understood"],
  ["http://u:s3cret@h", "is not an address that is understood"],
  ["redis:/u:s3cret@h", "is not an address that is understood"],
  ["redis://", "is not an address that is understood"],
  ["redis://u:s3cret@", "is not an address that is understood"],
  ["redis://u:s3cret@h@i", "is not an address that is understood"],
  ["redis://u:s3cret@h?db=1", "is not an address that is understood"],
  ["redis://u:s3cret@h/1#x", "is not an address that is understood"],
  ["redis+other://u:s3cret@h", "is not an address that is understood"],
  ["unix://u:s3cret@h", "is not an address that is understood"],
  ["unix:///run/s?s3cret", "is not an address that is understood"],
  ["redis://u:s3cret@h:0", "has a host that is not host, host:port or [ipv6]:port"],
  ["redis://u:s3cret@h:65536", "has a host that is not host, host:port or [ipv6]:port"],
  ["redis://u:s3cret@h:x", "has a host that is not host, host:port or [ipv6]:port"],
  ["redis://u:s3cret@::1", "has a host that is not host, host:port or [ipv6]:port"],
  ["redis://u:s3cret@h i", "has a host that is not host, host:port or [ipv6]:port"],
  ["redis+cluster://u:s3cret@a,,b", "has a host that is not host, host:port or [ipv6]:port"],
  ["redis://u:s3cret@a,b", "names several hosts"],
  ["redis://u:s3cret@a/main", "has no database number after the host"],
  ["redis://u:s3cret@a/-1", "has no database number after the host"],
  ["redis://u:s3cret@a/1/2", "has no database number after the host"],
  ["redis+cluster://u:s3cret@a/1", "names a database; a cluster has only 0"],
  ["redis+sentinel://u:s3cret@a", "names no primary"],
  ["redis+sentinel://u:s3cret@a/", "names no primary"],
  ["redis+sentinel://u:s3cret@a/main/x", "names no primary"],
  ["redis+sentinel://u:s3cret@a/main/0/1", "names no primary"],
  ["redis://u:s3cret%@h", "has a % that is not followed by two hexadecimal digits"],
  ["redis://u:s3cret%zz@h", "has a % that is not followed by two hexadecimal digits"],
  ["redis://u%:s3cret@h", "has a % that is not followed by two hexadecimal digits"],
  ["redis+sentinel://u:s3cret@h/m%", "has a % that is not followed by two hexadecimal digits"],
];

describe("the address of servers", () => {
  it.each(understood)("%s is understood", (url, servers) => {
    expect(parseRedisUrl(url)).toStrictEqual(servers);
  });

  it.each(refused)("%s is refused, and no password is revealed", (url, because) => {
    let error: unknown;
    try {
      parseRedisUrl(url);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(SluiceError);
    const { code, message, problems } = error as SluiceError;
    expect(code).toBe("invalid_request");
    expect(message).toContain(`the address of the Redis servers ${because}`);
    expect(problems).toEqual([{ path: ["servers"], message: expect.stringContaining(because) }]);
    expect(inspect(error, { showHidden: true, depth: 9 }).replace(/\n {4}at .*/g, "")).not.toContain("s3cret");
  });

  it("is logged without user, password and database", () => {
    const rendered = understood.map(([url]) => [url, renderServers(parseRedisUrl(url))]);
    expect(Object.fromEntries(rendered)).toMatchObject({
      "redis://h": "redis://h:6379",
      "redis://u:p@h": "redis://h:6379",
      "redis://h/0": "redis://h:6379",
      "redis://[fe80::1:2]:8/3": "redis://[fe80::1:2]:8",
      "valkeys://h:2": "rediss://h:2",
      "unix://u:p%40@/run/s": "unix:///run/s",
      "redis+cluster://a:1,b,[::1]:2/0": "redis+cluster://a:1,b:6379,[::1]:2",
      "rediss+sentinel://u:p@a/main/2": "rediss+sentinel://a:26379/main",
    });
  });
});
