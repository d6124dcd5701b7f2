import { fastify } from "fastify";
import { afterEach, describe, expect, it, vi } from "vitest";
import { RecentAddresses } from "./recent-addresses.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** The addresses that a server with these settings finds directly and from memory, and how often it asked its proxies. */
async function findBoth(trusts: (address: string) => boolean, requests: readonly (string | undefined)[]) {
  const recent = new RecentAddresses();
  const found: (readonly [string, string])[] = [];
  let asked = 0;
  const app = fastify({
    trustProxy: (address) => {
      asked += 1;
      return trusts(address);
    },
  });
  let askedForMemory = 0;
  app.get("/", async (request) => {
    const before = asked;
    const remembered = recent.find(request);
    askedForMemory += asked - before;
    found.push([remembered, request.ip]);
    return "ok";
  });
  for (const forwarded of requests) {
    const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
    await app.inject({ method: "GET", url: "/", headers, remoteAddress: "127.0.0.1" });
  }
  await app.close();
  return { found, asked: askedForMemory };
}

describe("addresses of the last second", () => {
  it("equal the addresses that Fastify finds, whatever is forwarded", async () => {
    const chains = [
      "192.0.2.1",
      "192.0.2.2, 10.0.0.1",
      "192.0.2.1",
      "junk",
      "",
      ",",
      "::1, 2001:db8::1",
      "x".repeat(300),
    ];
    const { found } = await findBoth((address) => /^(127\.|10\.)/.test(address), [...chains, undefined, ...chains]);
    expect(found).toHaveLength(17);
    for (const [remembered, ip] of found) expect(remembered).toBe(ip);
  });

  it("are found once for each peer and header", async () => {
    const { asked } = await findBoth((address) => address === "127.0.0.1", Array(50).fill("192.0.2.1"));
    expect(asked).toBeGreaterThan(0);
    expect(asked).toBeLessThan(5);
  });

  it("are forgotten after a second, and when there are many", async () => {
    const clock = vi.spyOn(performance, "now");
    const recent = new RecentAddresses();
    let reads = 0;
    const request = (forwarded: string) =>
      ({
        headers: { "x-forwarded-for": forwarded },
        socket: { remoteAddress: "127.0.0.1" },
        get ip() {
          reads += 1;
          return forwarded;
        },
      }) as never;
    clock.mockReturnValue(5000);
    recent.find(request("192.0.2.1"));
    recent.find(request("192.0.2.1"));
    expect(reads).toBe(1);
    clock.mockReturnValue(6000);
    recent.find(request("192.0.2.1"));
    expect(reads).toBe(2);
    for (let i = 0; i < 5000; i++)
      expect(recent.find(request(`10.0.${i >> 8}.${i & 255}`))).toBe(`10.0.${i >> 8}.${i & 255}`);
    recent.find(request("192.0.2.1"));
    expect(reads).toBe(5003);
  });
});
