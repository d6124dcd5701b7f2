import { isIP } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ipSubject, parseIp, renderIp } from "./ip-address.ts";

const canonical = (text: string): string | undefined => {
  const ip = parseIp(text);
  return ip === undefined ? undefined : renderIp(ip);
};

describe("parseIp and renderIp", () => {
  it.each([
    ["0.0.0.0", "0.0.0.0"],
    ["255.255.255.255", "255.255.255.255"],
    ["192.0.2.1", "192.0.2.1"],
    ["::", "::"],
    ["::1", "::1"],
    ["1::", "1::"],
    ["2001:DB8::A", "2001:db8::a"],
    ["2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"],
    ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
    ["2001:0:0:1:0:0:0:1", "2001:0:0:1::1"],
    ["2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
    ["::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"],
    ["2001:db8::192.0.2.33", "2001:db8::c000:221"],
    ["1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"],
    ["::1.2.3.4", "::102:304"],
    ["[2001:db8::1]", "2001:db8::1"],
    ["fe80::1%eth0", "fe80::1"],
    ["[fe80::1%25en0.100]", "fe80::1"],
  ])("reads %s as %s", (text, expected) => {
    expect(canonical(text)).toBe(expected);
  });

  it.each([
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::FFFF:c000:0201", "192.0.2.1"],
    ["0:0:0:0:0:ffff:c000:201", "192.0.2.1"],
    ["[::ffff:192.0.2.1]", "192.0.2.1"],
    ["::ffff:192.0.2.1%eth0", "192.0.2.1"],
    ["::ffff:255.255.255.255", "255.255.255.255"],
    ["64:ff9b::192.0.2.1", "192.0.2.1"],
    ["64:ff9b::c000:201", "192.0.2.1"],
    ["64:ff9b:1::c000:201", "64:ff9b:1::c000:201"],
    ["64:1::c000:201", "64:1::c000:201"],
    ["::ffff:0:c000:201", "::ffff:0:c000:201"],
  ])("unwraps %s to %s", (text, expected) => {
    expect(canonical(text)).toBe(expected);
  });

  it.each([
    "",
    " ",
    "localhost",
    "1.2.3",
    "1.2.3.4.5",
    "1.2.3.",
    ".1.2.3",
    "1..2.3",
    "256.1.1.1",
    "01.2.3.4",
    "1.2.3.00",
    "0x7f.0.0.1",
    "+1.2.3.4",
    "1.2.3.4 ",
    " 1.2.3.4",
    "1.2.3.4:80",
    "[1.2.3.4]",
    "1.2.3.4%eth0",
    "[::1]:80",
    "[::1",
    "::1]",
    "[]",
    ":",
    ":::",
    "1:::2",
    "::1::",
    ":1:2:3:4:5:6:7:8",
    "1:2:3:4:5:6:7:",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1::2:3:4:5:6:7:8",
    "12345::",
    "g::",
    "1:2:3:4:5:6:7:1.2.3.4",
    "1::2:3:4:5:6:7:1.2.3.4",
    "::1.2.3",
    "::1.2.3.4:5",
    "::1.2.3.256",
    "fe80::1%",
    "fe80::1%et h0",
    "fe80::1%a/64",
    "::1/64",
    "١.٢.٣.٤",
    `::1%${"e".repeat(200)}`,
  ])("refuses %j", (text) => {
    expect(parseIp(text)).toBeUndefined();
  });

  it("accepts exactly what the platform's own parser accepts, brackets and zone ids aside", () => {
    const piece = fc.constantFrom(
      "0",
      "1",
      "00",
      "ff",
      "ffff",
      "12345",
      "255",
      "256",
      "1.2.3.4",
      ":",
      "::",
      ".",
      "g",
      "",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 17 }), (pieces) => {
        const text = pieces.join("");
        expect(parseIp(text) !== undefined).toBe(isIP(text) !== 0);
      }),
      { numRuns: 3000 },
    );
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        expect(parseIp(text)).toBeDefined();
      }),
    );
  });

  it("writes an IPv6 address as the platform's URL parser does, and reads back what it wrote", () => {
    const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }));
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const text = renderIp({ family: "ipv6", groups });
        expect(`[${text}]`).toBe(new URL(`http://[${groups.map((one) => one.toString(16)).join(":")}]/`).hostname);
        expect(canonical(text)).toBe(canonical(groups.map((one) => one.toString(16)).join(":")));
      }),
    );
  });
});

describe("ipSubject", () => {
  it("is the address itself for IPv4", () => {
    expect(ipSubject("192.0.2.1")).toBe("192.0.2.1");
  });

  it("is the /64 for IPv6, so that a client rotating inside its own network is one subject", () => {
    expect(ipSubject("2001:db8:1:2:aaaa:bbbb:cccc:dddd")).toBe("2001:db8:1:2::/64");
    expect(ipSubject("2001:db8:1:2::1")).toBe("2001:db8:1:2::/64");
    expect(ipSubject("2001:db8:1:3::1")).toBe("2001:db8:1:3::/64");
  });

  it("masks at any number of bits", () => {
    expect(ipSubject("2001:db8:ffff:ffff::1", 0)).toBe("::/0");
    expect(ipSubject("2001:db8:ffff:ffff::1", 33)).toBe("2001:db8:8000::/33");
    expect(ipSubject("2001:db8:ffff:ffff::1", 56)).toBe("2001:db8:ffff:ff00::/56");
    expect(ipSubject("2001:db8:ffff:ffff::1", 128)).toBe("2001:db8:ffff:ffff::1/128");
  });

  it("keeps IPv4 clients apart that arrive as mapped or NAT64 addresses", () => {
    expect(ipSubject("::ffff:192.0.2.1")).toBe("192.0.2.1");
    expect(ipSubject("::ffff:192.0.2.2")).toBe("192.0.2.2");
    expect(ipSubject("64:ff9b::192.0.2.1")).toBe("192.0.2.1");
  });

  it("drops the zone id, which is the caller's to choose", () => {
    expect(ipSubject("fe80::1%a")).toBe(ipSubject("fe80::2%b"));
  });

  it("refuses junk", () => {
    expect(ipSubject("")).toBeUndefined();
    expect(ipSubject("unknown")).toBeUndefined();
    expect(ipSubject("1.2.3.4:80")).toBeUndefined();
    expect(ipSubject("001.2.3.4")).toBeUndefined();
  });

  it.each([-1, 129, 1.5, Number.NaN])("says so when the prefix is %d bits, whatever the address", (bits) => {
    expect(() => ipSubject("192.0.2.1", bits)).toThrow(/ipv6PrefixBits is .*; it must be a whole number from 0 to 128/);
  });
});
