import { describe } from "vitest";
import { useGrpcEngine } from "../../../../testing/whole-servers.ts";

/** Every suite of gRPC once more, on the other engine. Each is in a `describe` of its own, because it has hooks of its own. */
useGrpcEngine("grpc-js");

const suites = {
  contract: () => import("../contract.test.ts"),
  server: () => import("../server.test.ts"),
  attacks: () => import("../attacks.test.ts"),
  health: () => import("../health.test.ts"),
  reflection: () => import("../reflection.test.ts"),
  outages: () => import("../outages.test.ts"),
  "Envoy: contract": () => import("../../envoy/contract.test.ts"),
  "Envoy: ShouldRateLimit": () => import("../../envoy/should-rate-limit.test.ts"),
  "compat: GetUsage": () => import("../../../../compat/grpc/get-usage.test.ts"),
  "compat: known otherwise": () => import("../../../../compat/grpc/known-otherwise.test.ts"),
  "compat: PolicyAdmin": () => import("../../../../compat/grpc/policy-admin.test.ts"),
  "compat: RateLimiter": () => import("../../../../compat/grpc/rate-limiter.test.ts"),
  "compat: RateLimiterService": () => import("../../../../compat/grpc/ratelimiter.test.ts"),
};

for (const [name, load] of Object.entries(suites))
  describe(`grpc-js: ${name}`, async () => {
    await load();
  });
