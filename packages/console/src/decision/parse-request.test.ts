import { describe, expect, it } from "vitest";
import { parseRequest, renderPairs } from "./parse-request.ts";

describe("a pasted request", () => {
  it("may be pairs, with quotes and a cost", () => {
    expect(parseRequest(`tenant=acme endpoint="/a b" note='x y' cost=5`)).toEqual({
      request: { dimensions: { tenant: "acme", endpoint: "/a b", note: "x y" }, cost: 5 },
      notes: [],
    });
  });

  it("may be a check as JSON", () => {
    const text = '{ "dimensions": { "user": "u1", "shop": 7 }, "cost": 2, "domain": "edge" }';
    expect(parseRequest(text)?.request).toEqual({ dimensions: { user: "u1", shop: "7" }, cost: 2, domain: "edge" });
  });

  it("may be a curl command, whose secrets are left out", () => {
    const text = `$ curl -X POST 'https://api.example/v1/search?q=a' \\
      -H "X-Tenant: acme" -H 'x-shop-id: 7' -H 'Authorization: Bearer abc' -u me:secret --data '{"a":1}'`;
    const parsed = parseRequest(text, ["tenant", "shop"]);
    expect(parsed?.request.dimensions).toEqual({
      method: "POST",
      endpoint: "/v1/search?q=a",
      tenant: "acme",
      shop: "7",
    });
    expect(parsed?.notes).toEqual([expect.stringContaining("authorization was left out")]);
    expect(JSON.stringify(parsed)).not.toMatch(/abc|secret"/);
  });

  it("may be a curl command without a method: one with a body is a POST", () => {
    expect(parseRequest("curl http://h/x -d a=b")?.request.dimensions.method).toBe("POST");
    expect(parseRequest("curl http://h")?.request.dimensions).toEqual({ method: "GET", endpoint: "/" });
    expect(parseRequest("curl -s")).toBeUndefined();
  });

  it("may be the head of an HTTP request, up to its body", () => {
    const text = "GET /v1/search HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 203.0.113.7, 10.0.0.1\r\n\r\ntenant: evil";
    expect(parseRequest(text, ["tenant"])?.request.dimensions).toEqual({
      method: "GET",
      endpoint: "/v1/search",
      ip: "203.0.113.7",
    });
  });

  it("is none of these if it is prose", () => {
    for (const text of ["", "  ", "why is acme denied", "{ broken", "{}", "=x", "FETCH /x HTTP/1.1"])
      expect(parseRequest(text), text).toBeUndefined();
  });

  it("is written back as pairs that read the same", () => {
    const request = { dimensions: { tenant: 'a "b" \\c', endpoint: "/x", empty: "" }, cost: 3 };
    expect(parseRequest(renderPairs(request))?.request).toEqual(request);
    expect(renderPairs({ dimensions: { user: "u" }, cost: 1 })).toBe("user=u");
  });
});
