import { describe, expect, it } from "vitest";
import { createCidrSet } from "./cidr-set.ts";
import { findClientIp } from "./client-ip.ts";

const trustedProxies = createCidrSet(["10.0.0.0/8", "2001:db8:aaaa::/48"]);

describe("findClientIp without trusted proxies", () => {
  it("is the peer, whatever X-Forwarded-For says", () => {
    expect(findClientIp({ peer: "192.0.2.1", forwardedFor: "198.51.100.1" })).toBe("192.0.2.1");
    expect(findClientIp({ peer: "192.0.2.1", forwarded: "for=198.51.100.1" })).toBe("192.0.2.1");
    expect(findClientIp({ peer: "192.0.2.1", forwardedFor: "198.51.100.1", trustedProxies })).toBe("192.0.2.1");
  });

  it("is canonical", () => {
    expect(findClientIp({ peer: "::ffff:192.0.2.1" })).toBe("192.0.2.1");
    expect(findClientIp({ peer: "2001:DB8:0::1%eth0" })).toBe("2001:db8::1");
  });

  it("is undefined for a peer that cannot be read", () => {
    expect(
      findClientIp({ peer: "somewhere", forwardedFor: "198.51.100.1", trustedProxies: { hops: 1 } }),
    ).toBeUndefined();
    expect(findClientIp({ peer: undefined, forwardedFor: "198.51.100.1" })).toBeUndefined();
  });
});

describe("findClientIp behind proxies known by address", () => {
  const find = (forwardedFor: string | readonly string[] | undefined, peer = "10.0.0.1"): string | undefined =>
    findClientIp({ peer, forwardedFor, trustedProxies });

  it.each<[string, string | readonly string[] | undefined, string]>([
    ["one proxy", "198.51.100.1", "198.51.100.1"],
    ["two proxies", "198.51.100.1, 10.0.0.2", "198.51.100.1"],
    ["a client that made something up", "203.0.113.9, 198.51.100.1, 10.0.0.2", "198.51.100.1"],
    ["a client that claims to be a proxy", "203.0.113.9, 10.9.9.9, 198.51.100.1", "198.51.100.1"],
    ["only proxies, a request from inside", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["no header", undefined, "10.0.0.1"],
    ["an empty header", "", "10.0.0.1"],
    ["no header lines", [], "10.0.0.1"],
    ["one header line per hop", ["203.0.113.9", "198.51.100.1", "10.0.0.2"], "198.51.100.1"],
    ["header lines that are lists", ["203.0.113.9, 198.51.100.1", "10.0.0.3, 10.0.0.2"], "198.51.100.1"],
    ["no spaces", "203.0.113.9,198.51.100.1,10.0.0.2", "198.51.100.1"],
    ["tabs and spaces", " 198.51.100.1\t ,\t10.0.0.2 ", "198.51.100.1"],
    ["a port", "198.51.100.1:4711, 10.0.0.2:80", "198.51.100.1"],
    ["IPv6", "2001:db8::7, 2001:db8:aaaa::1", "2001:db8::7"],
    ["IPv6 in brackets", "[2001:db8::7], [2001:db8:aaaa::1]", "2001:db8::7"],
    ["IPv6 in brackets with a port", "[2001:db8::7]:4711", "2001:db8::7"],
    ["IPv6 that ends like a port", "2001:db8::7:80", "2001:db8::7:80"],
    ["a mapped address", "198.51.100.1, ::ffff:10.0.0.2", "198.51.100.1"],
    ["junk at the right", "198.51.100.1, unknown", "10.0.0.1"],
    ["junk behind a good hop", "198.51.100.1, _hidden, 10.0.0.2", "10.0.0.2"],
    ["an empty hop", "198.51.100.1, , 10.0.0.2", "10.0.0.2"],
    ["junk that need not be read", "<script>, 198.51.100.1", "198.51.100.1"],
    ["a port that is none", "198.51.100.1:http", "10.0.0.1"],
    ["a very long hop", `${"1".repeat(100_000)}, 10.0.0.2`, "10.0.0.2"],
  ])("finds the client behind %s", (_what, header, expected) => {
    expect(find(header)).toBe(expected);
  });

  it("considers 64 hops from the right and no more", () => {
    const proxies = (count: number) => new Array<string>(count).fill("10.0.0.2").join(",");
    expect(find(`198.51.100.1,${proxies(63)}`)).toBe("198.51.100.1");
    expect(find(`198.51.100.1,${proxies(64)}`)).toBe("10.0.0.2");
  });
});

describe("findClientIp behind a number of proxies", () => {
  const find = (hops: number, forwardedFor?: string): string | undefined =>
    findClientIp({ peer: "192.0.2.1", forwardedFor, trustedProxies: { hops } });

  it("counts the peer as the first", () => {
    expect(find(0, "c, 198.51.100.2, 198.51.100.1")).toBe("192.0.2.1");
    expect(find(1, "c, 198.51.100.2, 198.51.100.1")).toBe("198.51.100.1");
    expect(find(2, "c, 198.51.100.2, 198.51.100.1")).toBe("198.51.100.2");
  });

  it("takes the leftmost address of a list that is too short", () => {
    expect(find(3, "198.51.100.2, 198.51.100.1")).toBe("198.51.100.2");
    expect(find(3)).toBe("192.0.2.1");
  });

  it("stops at junk", () => {
    expect(find(2, "198.51.100.2, -, 198.51.100.1")).toBe("198.51.100.1");
  });

  it.each([-1, Number.NaN])("trusts no proxy for %d hops", (hops) => {
    expect(find(hops, "198.51.100.1")).toBe("192.0.2.1");
  });
});

describe("findClientIp with a peer that has no address", () => {
  const forwardedFor = "198.51.100.1, 10.0.0.2";

  it.each([undefined, ""])("believes a Unix socket (%j) if the server says that it listens on one", (peer) => {
    expect(findClientIp({ peer, peerIsUnixSocket: true, forwardedFor, trustedProxies })).toBe("198.51.100.1");
    expect(findClientIp({ peer, peerIsUnixSocket: true, forwardedFor: "junk", trustedProxies })).toBeUndefined();
    expect(findClientIp({ peer, peerIsUnixSocket: true, trustedProxies })).toBeUndefined();
  });

  it("does not believe a TCP client that hung up, whose address is gone too", () => {
    expect(findClientIp({ peer: undefined, forwardedFor, trustedProxies })).toBeUndefined();
  });

  it("counts it as a hop if proxies are counted", () => {
    expect(findClientIp({ peer: undefined, forwardedFor, trustedProxies: { hops: 2 } })).toBe("198.51.100.1");
  });

  it("believes nothing if no proxy is trusted", () => {
    expect(findClientIp({ peer: undefined, peerIsUnixSocket: true, forwardedFor })).toBeUndefined();
  });
});

describe("findClientIp with Forwarded", () => {
  const find = (forwarded: string | readonly string[]): string | undefined =>
    findClientIp({ peer: "10.0.0.1", forwarded, trustedProxies });

  it.each<[string, string | readonly string[], string]>([
    ["one element", "for=198.51.100.1", "198.51.100.1"],
    ["other parameters", "by=10.0.0.1;FOR=198.51.100.1; proto=https;host=example.com", "198.51.100.1"],
    ["several elements", "for=203.0.113.9, for=198.51.100.1;proto=http, for=10.0.0.2", "198.51.100.1"],
    ["several lines", ["for=203.0.113.9, for=198.51.100.1", "for=10.0.0.2"], "198.51.100.1"],
    ["quoted IPv6 with a port", 'for="[2001:db8::7]:4711"', "2001:db8::7"],
    ["quoted IPv4 with a port", 'for="198.51.100.1:80"', "198.51.100.1"],
    ["a hidden port", 'for="198.51.100.1:_p1"', "198.51.100.1"],
    ["separators in quotes", 'for=198.51.100.1;host="a,b;for=203.0.113.9", for=10.0.0.2', "198.51.100.1"],
    ["escaped quotes", 'for=198.51.100.1;host="a\\",for=203.0.113.9,\\"b", for=10.0.0.2', "198.51.100.1"],
    ["a quote left open by the client", 'for=203.0.113.9;x=", for="[2001:db8::7]"', "2001:db8::7"],
    ["a quote left open and escaped by the client", 'for=203.0.113.9;x="\\, for=198.51.100.1', "198.51.100.1"],
    ["unknown", "for=198.51.100.1, for=unknown", "10.0.0.1"],
    ["an obfuscated hop", "for=198.51.100.1, for=_secret, for=10.0.0.2", "10.0.0.2"],
    ["an element without for", "for=198.51.100.1, proto=https", "10.0.0.1"],
    ["an element with two", "for=203.0.113.9;for=198.51.100.1", "10.0.0.1"],
    ["an empty header", "", "10.0.0.1"],
  ])("finds the client by %s", (_what, header, expected) => {
    expect(find(header)).toBe(expected);
  });

  it("is ignored if X-Forwarded-For is given", () => {
    const question = { peer: "10.0.0.1", forwardedFor: "198.51.100.1", forwarded: "for=203.0.113.9", trustedProxies };
    expect(findClientIp(question)).toBe("198.51.100.1");
  });
});
