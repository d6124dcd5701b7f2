import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCidrSet, parseCidr } from "./cidr-set.ts";
import { type IpAddress, parseIp, renderIp } from "./ip-address.ts";

const ip = (text: string): IpAddress => parseIp(text)!;

describe("parseCidr", () => {
  it.each([
    ["10.0.0.0/8", "10.0.0.0", 8],
    ["10.1.2.3/8", "10.0.0.0", 8],
    ["192.0.2.1", "192.0.2.1", 32],
    ["0.0.0.0/0", "0.0.0.0", 0],
    ["255.255.255.255/1", "128.0.0.0", 1],
    ["2001:db8::1/32", "2001:db8::", 32],
    ["2001:db8::1", "2001:db8::1", 128],
    ["::/0", "::", 0],
    ["::ffff:10.1.2.3/104", "10.0.0.0", 8],
    ["::ffff:0:0/96", "0.0.0.0", 0],
    ["::ffff:10.1.2.3", "10.1.2.3", 32],
    ["64:ff9b::/96", "0.0.0.0", 0],
    ["::ffff:10.1.2.3/64", "::", 64],
  ])("reads %s as %s with %d bits", (text, first, prefixBits) => {
    const range = parseCidr(text)!;
    expect([renderIp(range.first), range.prefixBits]).toEqual([first, prefixBits]);
  });

  it.each([
    "",
    "/",
    "/8",
    "10.0.0.0/",
    "10.0.0.0/33",
    "10.0.0.0/08",
    "10.0.0.0/-1",
    "10.0.0.0/+8",
    "10.0.0.0/8.0",
    "10.0.0.0/ 8",
    "10.0.0.0/8/8",
    "10.0.0/8",
    "10.0.0.0/255.0.0.0",
    "::/129",
    "::/1000",
    "fe80::%eth0/1x",
    "anything",
  ])("refuses %j", (text) => {
    expect(parseCidr(text)).toBeUndefined();
  });
});

describe("createCidrSet", () => {
  it("holds addresses and ranges of both families", () => {
    const set = createCidrSet(["10.0.0.0/8", "192.0.2.7", "2001:db8::/33", "::1"]);
    expect(["10.255.0.1", "192.0.2.7", "2001:db8:7fff::1", "::1"].map((text) => set.has(ip(text)))).not.toContain(
      false,
    );
    expect(["11.0.0.1", "192.0.2.8", "2001:db8:8000::1", "::2"].map((text) => set.has(ip(text)))).not.toContain(true);
  });

  it("holds a mapped address by its IPv4 range, and an IPv4 address by a mapped range", () => {
    expect(createCidrSet(["10.0.0.0/8"]).has(ip("::ffff:10.0.0.1"))).toBe(true);
    expect(createCidrSet(["::ffff:10.0.0.0/104"]).has(ip("10.0.0.1"))).toBe(true);
  });

  it("does not take all of IPv6 for all of IPv4, nor the other way round", () => {
    expect(createCidrSet(["::/0"]).has(ip("192.0.2.1"))).toBe(false);
    expect(createCidrSet(["0.0.0.0/0"]).has(ip("2001:db8::1"))).toBe(false);
  });

  it("holds nothing when it is empty", () => {
    expect(createCidrSet([]).has(ip("192.0.2.1"))).toBe(false);
    expect(createCidrSet([]).has(ip("::1"))).toBe(false);
  });

  it("names every entry that is neither, and what would be right", () => {
    const create = () => createCidrSet(["10.0.0.0/8", "10.0.0.0/40", "office"]);
    expect(create).toThrow(
      expect.objectContaining({
        code: "invalid_request",
        problems: [
          { path: [1], message: expect.stringContaining('"10.0.0.0/40" is not an IP address or range; write it as') },
          { path: [2], message: expect.stringContaining('"office"') },
        ],
      }),
    );
  });

  it("answers as a comparison bit by bit with every entry would", () => {
    const bit = fc.constantFrom(0, 1);
    const addressBits = fc.oneof(
      fc.array(bit, { minLength: 32, maxLength: 32 }),
      // Few distinct leading bits, so that ranges and addresses meet.
      fc.array(bit, { minLength: 8, maxLength: 8 }).map((head) => [...head, ...new Array(24).fill(0)]),
      fc.array(bit, { minLength: 128, maxLength: 128 }),
      fc.array(bit, { minLength: 8, maxLength: 8 }).map((head) => [...head, ...new Array(120).fill(1)]),
    );
    const entry = addressBits.chain((bits) => fc.tuple(fc.constant(bits), fc.integer({ min: 0, max: bits.length })));
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 12 }), addressBits, (entries, address) => {
        const set = createCidrSet(entries.map(([bits, prefix]) => `${renderIp(ipFromBits(bits))}/${prefix}`));
        const expected = entries.some(
          ([bits, prefix]) =>
            bits.length === address.length && bits.slice(0, prefix).every((one, index) => one === address[index]),
        );
        expect(set.has(ipFromBits(address))).toBe(expected);
      }),
      { numRuns: 500 },
    );
  });
});

function ipFromBits(bits: readonly number[]): IpAddress {
  if (bits.length === 32) return { family: "ipv4", bits: Number.parseInt(bits.join(""), 2) };
  const groups = [0, 1, 2, 3, 4, 5, 6, 7].map((group) => bits.slice(group * 16, group * 16 + 16).join(""));
  return { family: "ipv6", groups: groups.map((group) => Number.parseInt(group, 2)) };
}
