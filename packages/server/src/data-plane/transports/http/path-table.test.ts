import { expect, it } from "vitest";
import { PathTable } from "./path-table.ts";

const table = new PathTable<string>();
table.add("/v1/check", ["POST"], "check");
table.add("/v1/policies", ["GET", "HEAD"], "list");
table.add("/v1/policies/{id}", ["GET"], "get");
table.add("/v1/policies/{id}", ["DELETE"], "delete");
table.add("/v1/policies/latest", ["GET"], "latest");

const find = (url: string, method = "GET"): unknown => {
  const found = table.find(url);
  return found && [found.byMethod.get(method), { ...found.params }];
};

it("finds paths with or without a query, and as clients of proxies write them", () => {
  for (const url of ["/v1/policies", "/v1/policies?a=b/c", "/v1/policies#x", "http://sluice:8080/v1/policies?a"])
    expect(find(url), url).toEqual(["list", {}]);
  expect(find("/v1/%70olicies")).toEqual(["list", {}]);
  expect(find("/v1/check")).toEqual([undefined, {}]);
});

it("reads parameters, of which an escaped slash is a part", () => {
  expect(find("/v1/policies/a%2Fb%25?x=1")).toEqual(["get", { id: "a/b%" }]);
  expect(find("/v1/policies/a", "DELETE")).toEqual(["delete", { id: "a" }]);
  expect(find("/v1/policies/latest")).toEqual(["latest", {}]);
});

it("finds nothing at other paths, not even by an escaped slash", () => {
  const others = [
    "",
    "/",
    "/v1",
    "/v1/policies/",
    "/v1/policies/a/b",
    "/V1/policies",
    "//v1/policies",
    "/v1%2Fpolicies",
  ];
  for (const url of others) expect(find(url), url).toBeUndefined();
});

it("refuses a percent sign that begins no escape", () => {
  expect(() => table.find("/v1/policies/100%")).toThrow("the path has a % that begins no escape");
});
