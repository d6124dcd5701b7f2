import { createLimiter, limit, type MemorySubjectDirectory } from "sluice";
import { describe, expect, it } from "vitest";
import { createGate, type RequestReader } from "./gate.ts";
import { everything, requestNeeds } from "./request-needs.ts";

const ofPolicy = (policy: object): unknown =>
  requestNeeds(createLimiter({ policies: { policies: [{ id: "api", on_failure: "open", ...policy }] } }), undefined);
const limits = [{ by: ["user"], windows: ["1/s"] }];
const neither = { forEndpoint: false, forMethod: false, forAddress: false };
/** A policy for some requests leaves the others to the fallback, which may count by address. */
const orFallback = { ...neither, forAddress: true };

describe("the parts of a request that policies need", () => {
  it.each([
    ["nothing but the subject", { limits }, neither],
    ["an endpoint to match", { limits, match: { endpoint: "/**" } }, { ...orFallback, forEndpoint: true }],
    ["a method to match", { limits, match: { method: "GET" } }, { ...orFallback, forMethod: true }],
    ["costs by endpoint", { limits, cost: { "/dear": 5 } }, { ...neither, forEndpoint: true }],
    ["a limit by endpoint", { limits: [{ by: ["endpoint"], windows: "1/s" }] }, { ...neither, forEndpoint: true }],
    ["a limit by method", { limits: [{ by: ["method"], windows: "1/s" }] }, { ...neither, forMethod: true }],
    ["an allow list", { limits, allow: { endpoint: "/free" } }, { ...neither, forEndpoint: true }],
    ["a deny list", { limits, deny: { method: "TRACE" } }, { ...neither, forMethod: true }],
    [
      "a share of endpoints",
      { limits, rollout: { percent: 50, by: "endpoint" } },
      { ...orFallback, forEndpoint: true },
    ],
    ["a limit by address", { limits: [{ by: ["ip"], windows: "1/s" }] }, { ...neither, forAddress: true }],
    ["a limit by subject", { limits: [{ by: ["subject"], windows: "1/s" }] }, { ...neither, forAddress: true }],
    ["addresses to deny", { limits, deny: { ip: "10.0.0.0/8" } }, { ...neither, forAddress: true }],
    [
      "a local limit by endpoint",
      { limits, on_failure: "local", local_limits: [{ by: ["endpoint"], windows: "1/s" }] },
      { ...neither, forEndpoint: true },
    ],
  ])("%s", (_what, policy, needs) => {
    expect(ofPolicy(policy)).toEqual(needs);
  });

  it("are all if policies are not known here, or subjects have custom limits", () => {
    const { check, charge, give } = limit("1/s").by("user").limiter;
    expect(requestNeeds({ check, charge, give }, undefined)).toEqual(everything);
    const subjects = [{ user: "ada", limits: [{ policy: "api", windows: ["9/s"] }] }];
    const policies = { policies: [{ id: "api", limits, on_failure: "open" }], subjects };
    expect(requestNeeds(createLimiter({ policies }), undefined)).toEqual(everything);
  });

  it("are computed again when policies are replaced, or a subject gets custom limits", () => {
    const asked: string[] = [];
    const note = (what: string) => (): string => {
      asked.push(what);
      return what;
    };
    const reader: RequestReader<object> = {
      method: note("method"),
      path: note("path"),
      route: note("route"),
      peer: () => "192.0.2.1",
      ip: () => "192.0.2.1",
      header: () => undefined,
    };
    const limiter = createLimiter({ policies: { policies: [{ id: "api", limits, on_failure: "open" }] } });
    const gate = createGate(reader, limiter, { dimensions: { user: () => "ada" } });
    gate.decide({});
    expect(asked).toEqual([]);
    limiter.usePolicies({ policies: [{ id: "api", limits, match: { method: "GET" }, on_failure: "open" }] });
    gate.decide({});
    expect(asked.splice(0)).toEqual(["method"]);
    limiter.usePolicies({ policies: [{ id: "api", limits, on_failure: "open" }] });
    gate.decide({});
    expect(asked).toEqual([]);
    (limiter.subjects as MemorySubjectDirectory).set({ dimension: "user", value: "ada", tier: "pro", limits: [] });
    gate.decide({});
    expect(asked).toEqual(["route", "method"]);
  });
});
