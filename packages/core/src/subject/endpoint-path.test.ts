import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maxReadings, normalizeEndpoint, otherReadings } from "./endpoint-path.ts";

const anyText = fc
  .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 8 })
  .map((codes) => String.fromCharCode(...codes));

describe("normalizeEndpoint", () => {
  it.each([
    ["/v1/orders", "/v1/orders", "normal already"],
    ["/", "/", "the root"],
    ["", "/", "nothing"],
    ["*", "/*", "OPTIONS *"],
    ["v1/orders", "/v1/orders", "no leading slash"],
    ["/v1/orders/", "/v1/orders", "a trailing slash"],
    ["/v1/orders///", "/v1/orders", "many trailing slashes"],
    ["//v1/orders", "/v1/orders", "two leading slashes, not a host"],
    ["/v1//orders", "/v1/orders", "an empty segment"],
    ["/V1/Orders", "/v1/orders", "capitals"],
    ["/CAFÉ", "/café", "capitals beyond ASCII"],
    ["/v1/./orders", "/v1/orders", "a dot segment"],
    ["/v1/x/../orders", "/v1/orders", "a parent segment"],
    ["/../../v1/orders", "/v1/orders", "above the root"],
    ["/v1/orders/.", "/v1/orders", "a dot at the end"],
    ["/v1/orders/x/..", "/v1/orders", "a parent at the end"],
    ["/..", "/", "only a parent"],
    ["./v1/orders", "/v1/orders", "a leading dot"],
    ["/v1/%2e/orders", "/v1/orders", "an encoded dot segment"],
    ["/v1/x/%2e%2E/orders", "/v1/orders", "an encoded parent"],
    ["/v1/x/.%2e/orders", "/v1/orders", "a half encoded parent"],
    ["/v1/x/..;a=1/orders", "/v1/orders", "a parent with parameters"],
    ["/v1/...", "/v1/...", "three dots are a name"],
    ["/v1/..orders", "/v1/..orders", "a name that starts with dots"],
    ["/.well-known/x", "/.well-known/x", "a name that starts with a dot"],
    ["/v1/%6Frders", "/v1/orders", "an encoded letter"],
    ["/v1/%4Frders", "/v1/orders", "an encoded capital"],
    ["/caf%C3%A9", "/café", "UTF-8"],
    ["/caf%C3%89", "/café", "a UTF-8 capital"],
    ["/%F0%9F%8D%BA", "/🍺", "UTF-8 of four bytes"],
    ["/v1%2Forders", "/v1/orders", "an encoded slash"],
    ["/v1%2forders%2F", "/v1/orders", "an encoded trailing slash"],
    ["/v1/x%2F..%2Forders", "/v1/orders", "a parent between encoded slashes"],
    ["/v1\\orders", "/v1/orders", "a backslash"],
    ["/v1/x\\..\\orders", "/v1/orders", "a parent between backslashes"],
    ["/v1%5Corders", "/v1/orders", "an encoded backslash"],
    ["/v1/orders?x=/../..", "/v1/orders", "a query"],
    ["/v1/orders#x", "/v1/orders", "a fragment"],
    ["/v1/orders/?#", "/v1/orders", "empty query and fragment"],
    ["?x", "/", "only a query"],
    ["/v1;x=1/orders;y", "/v1/orders", "path parameters"],
    ["/v1/orders;", "/v1/orders", "an empty parameter"],
    ["/;/v1/orders", "/v1/orders", "a segment of parameters only"],
    ["/v1/orders%3Bx", "/v1/orders", "an encoded parameter"],
    ["/v1/ord\0ers", "/v1/orders", "NUL"],
    ["/v1/ord%00ers", "/v1/orders", "an encoded NUL"],
    ["/v1/ord\ters\r\n", "/v1/orders", "tab and line end"],
    ["/v1/ord%0d%0aers%7F", "/v1/orders", "encoded control characters"],
    ["/v1/ord%C2%85ers", "/v1/orders", "control characters beyond ASCII"],
    ["/v1/.%00./orders", "/orders", "a parent hidden by NUL"],
    ["http://example.com/v1/orders", "/v1/orders", "the absolute form"],
    ["HTTPS://user:pw@example.com:8443/v1/orders?x", "/v1/orders", "the absolute form, in full"],
    ["http://example.com", "/", "the absolute form of the root"],
    ["http://example.com?x=/v1", "/", "the absolute form with a query only"],
    ["http://example.com\\v1\\orders", "/v1/orders", "the absolute form with backslashes"],
    ["/http://example.com/v1", "/http:/example.com/v1", "an address inside a path is a path"],
    ["/a b", "/a b", "a space"],
    ["/a%20b", "/a b", "an encoded space"],
    ["/a+b", "/a+b", "a plus, which is a space in queries only"],
    ["/100%", "/100%", "a percent sign at the end"],
    ["/100%2", "/100%2", "half an escape"],
    ["/%zz/%G1", "/%zz/%g1", "escapes that are none"],
    ["/%FF", "/%ff", "a byte that is not UTF-8"],
    ["/%C3%28", "/%c3(", "a cut UTF-8 sequence"],
    ["/%C3", "/%c3", "a UTF-8 sequence cut by the end"],
    ["/x/%C0%AE%C0%AE/y", "/x/%c0%ae%c0%ae/y", "an overlong dot, which is not UTF-8"],
    ["/%E0%80%AF", "/%e0%80%af", "an overlong slash"],
    ["/%ED%A0%80", "/%ed%a0%80", "a surrogate"],
    ["/%F4%90%80%80", "/%f4%90%80%80", "beyond Unicode"],
    ["/x/%252e%252e/y", "/x/%2e%2e/y", "encoded twice, decoded once"],
    ["/a%3Fb", "/a?b", "an encoded question mark is part of the name"],
    ["/a%23b", "/a#b", "an encoded hash is part of the name"],
    ["/caf\u00c3\u00a9", "/café", "UTF-8 as Node hands it out, a character for each byte"],
    ["/CAF\u00c3\u0089", "/café", "a capital of it, whose second byte looks like a control character"],
    ["/caf\u00c3%A9", "/café", "half of it escaped"],
    ["/caf%C3\u00a9", "/café", "the other half escaped"],
    ["/café/日本", "/café/日本", "text that is no longer bytes"],
    ["/\u00c3\u0028", "/ã(", "bytes that are not UTF-8"],
    ["/v1/login.", "/v1/login.", "a dot at the end of a name"],
  ])("%j is %j: %s", (raw, expected) => {
    expect(normalizeEndpoint(raw)).toBe(expected);
  });

  it("never throws, whatever the bytes", () => {
    const piece = fc.constantFrom(
      "%",
      "%2",
      "%2f",
      "%5C",
      "%c3",
      "%a9",
      "%ed",
      "%00",
      "/",
      "\\",
      "..",
      ";",
      "?",
      "a",
      "\ud800",
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, anyText)), (pieces) => {
        const normal = normalizeEndpoint(pieces.join(""));
        expect(normal).toMatch(/^\//);
        expect(normal.split("/").slice(1)).not.toContain("..");
        otherReadings(pieces.join(""));
      }),
    );
  });

  it("is its own normal form if nothing is encoded", () => {
    const piece = fc.constantFrom(
      "/",
      "//",
      "\\",
      ".",
      "..",
      ";x=1",
      "?q",
      "#f",
      "A",
      "é",
      "İ",
      "b c",
      "http://h",
      "\0",
      "\n",
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string()), { maxLength: 12 }), (pieces) => {
        const raw = pieces.join("").replaceAll("%", "");
        const normal = normalizeEndpoint(raw);
        expect(normalizeEndpoint(normal)).toBe(normal);
      }),
      { numRuns: 1000 },
    );
  });

  it("gives every disguise of a path the same form", () => {
    const disguise = fc.constantFrom<(path: string) => string>(
      (path) => path.replaceAll("/", "//"),
      (path) => path.replaceAll("/", "/./"),
      (path) => path.replaceAll("/", "/x/../"),
      (path) => path.replaceAll("/", "\\"),
      (path) => path.replaceAll("/", ";p=1/"),
      (path) => path.toUpperCase(),
      (path) => `${path}/`,
      (path) => `${path}?q=1`,
      (path) => `http://example.com${path}`,
    );
    fc.assert(
      fc.property(fc.array(disguise, { maxLength: 3 }), fc.boolean(), (disguises, encode) => {
        let path = "/v1/orders/export";
        for (const one of disguises) path = path.includes("?") || path.includes("//e") ? path : one(path);
        if (encode) path = path.replaceAll("o", "%6f").replaceAll("..", "%2E.");
        expect(normalizeEndpoint(path)).toBe("/v1/orders/export");
      }),
    );
  });

  it("considers the first 8 KiB only", () => {
    expect(normalizeEndpoint(`/${"a".repeat(8191)}`)).toHaveLength(8192);
    expect(normalizeEndpoint(`/${"a".repeat(1_000_000)}`)).toHaveLength(8192);
    expect(normalizeEndpoint(`/a${"/".repeat(8190)}b`)).toBe("/a");
  });
});

describe("otherReadings", () => {
  it.each([
    ["/files/a%2Fb", "/files/a%2fb", "one name with an encoded slash"],
    ["/files/a%5Cb", "/files/a%5cb", "one name with an encoded backslash"],
    ["/files/a\\b", "/files/a\\b", "one name with a backslash"],
    ["/files/a;b", "/files/a;b", "one name with a semicolon"],
    ["/files/;x", "/files/;x", "a name that begins with a semicolon"],
    ["/Files/../Files/A%2fB/?q", "/files/a%2fb", "everything else is undone as ever"],
    ["/files/..%2Fadmin", "/files/..%2fadmin", "no parent segment, part of a name"],
    ["/files/%2e%2e%2Fadmin", "/files/..%2fadmin", "no parent segment, encoded or not"],
    ["/files\\a%2Fb", "/files/a%2fb", "a backslash that separates beside an encoded slash that does not"],
    ["/files/%2F", "/files/%2f", "a name that is a slash"],
    ["http://h%2F/files/a%2Fb", "/files/a%2fb", "the absolute form"],
    ["//public/v1/login", "/v1/login", "public is a host"],
    ["///public/v1/login", "/v1/login", "public is a host behind any number of slashes"],
    ["/\\public/v1/login", "/v1/login", "public is a host behind a backslash as well"],
    ["//public/../x/../v1", "/../x/../v1", "a host, and dots left alone behind it"],
    ["http:///public/v1/login", "/v1/login", "public is the host of the absolute form"],
    ["x:/v1/login", "/v1/login", "a scheme without a host"],
    ["/v1//../login", "/v1/login", ".. takes back the empty segment"],
    ["/v1/orders/../../public/x", "/v1/orders/../../public/x", "dots left alone"],
    ["/v1/orders/%2e%2e/%2E./public/x", "/v1/orders/../../public/x", "encoded dots left alone"],
    ["/v1/orders/%2e%2e/..", "/v1/orders", "dots resolved before they are decoded"],
    ["/files//x", "/files//x", "an empty name"],
    ["/files/", "/files/", "an empty name at the end"],
    ["/files/%00", "/files/\0", "a control character kept"],
    ["/x#/../v1/login", "/v1/login", "a hash that begins no fragment"],
    ["/v1/login;x/y", "/v1/login", "a semicolon that begins the query"],
    ["/v1/login.", "/v1/login", "dots at the end passed over"],
    ["/v1/login%20%2e", "/v1/login", "spaces and dots at the end passed over"],
  ])("of %j include %j: %s", (raw, expected) => {
    expect(otherReadings(raw)).toContain(expected);
    expect(otherReadings(raw)).not.toContain(normalizeEndpoint(raw));
  });

  it.each(["/files/a", "/files/a%20b", "/files/a%252Fb", "/files/a?next=%2Fb", "http://h%2F/files", "/%2"])(
    "of %j are none",
    (raw) => {
      expect(otherReadings(raw)).toEqual([]);
    },
  );

  const trick = fc.constantFrom(
    ..."/,//,\\,.,..,%2e,%2f,%5c,%3b,;,#,?,%00,%20,a,//h,http:/,http://,%c3,\u00c3,\u00a9".split(","),
  );

  it("are never more than the bound, and are found in bounded time or refused", () => {
    fc.assert(
      fc.property(fc.array(trick, { maxLength: 60 }), (pieces) => {
        const raw = pieces.join("");
        const readings = [normalizeEndpoint(raw), ...otherReadings(raw)];
        expect(new Set(readings).size).toBe(readings.length);
        expect(readings.length).toBeLessThanOrEqual(maxReadings);
        for (const reading of readings) expect(reading).toMatch(/^\//);
      }),
      { numRuns: 1000 },
    );
  });

  it("are refused if a long path has very many", () => {
    const hostile = `//h${"/a;b\\c/..%2fd;e%5c../%2e%2e//".repeat(140)}#/..`;
    expect(() => otherReadings(hostile)).toThrow(/dimensions\.endpoint can be read in too many ways/);
    // Long ones with a trick or two are not.
    for (const path of [`//${"a/".repeat(2000)}`, `/${"a/../".repeat(800)}`, `/x/${"%2F".repeat(1300)}`])
      expect(otherReadings(path).length).toBeGreaterThan(0);
  });
});
