import { PolicyAdminDefinition as admin, RateLimiterDefinition as sluice } from "@sluice/protocol";
import { RateLimiterServiceDefinition as ratelimiter } from "@sluice/protocol/ratelimiter";
import type { ControlPlane } from "../../control-plane/control-plane.ts";
import { lease } from "../../data-plane/transports/grpc/handlers/lease.ts";
import { type Method, type MethodAudit, unary, watch } from "../../data-plane/transports/grpc/method.ts";
import { checkAndIncrement } from "./handlers/check-and-increment.ts";
import { checkRateLimit } from "./handlers/check-rate-limit.ts";
import { configurePolicy } from "./handlers/configure-policy.ts";
import { consumeAndCheckLimit } from "./handlers/consume-and-check-limit.ts";
import { getBucketStatus } from "./handlers/get-bucket-status.ts";
import { getCurrentConfig } from "./handlers/get-current-config.ts";
import { getRemainingQuota } from "./handlers/get-remaining-quota.ts";
import { getUsage } from "./handlers/get-usage.ts";
import { listPolicies } from "./handlers/list-policies.ts";
import { resetKey } from "./handlers/reset-key.ts";
import { resetLimit } from "./handlers/reset-limit.ts";

const reset: MethodAudit = { action: "subject.reset" };

/**
 * Methods known to clients of other limiters. Those of the control plane answer UNIMPLEMENTED without a policy store.
 */
export function compatMethods(control: ControlPlane | undefined): readonly Method[] {
  const methods: readonly Method[] = [
    unary(sluice, "checkRateLimit", "check", checkRateLimit),
    unary(sluice, "getRemainingQuota", "read", getRemainingQuota),
    unary(sluice, "resetLimit", "operate", resetLimit, reset),
    unary(sluice, "checkAndIncrement", "check", checkAndIncrement),
    unary(sluice, "getUsage", "read", getUsage(control)),
    unary(sluice, "resetKey", "operate", resetKey, reset),
    unary(admin, "configurePolicy", "edit", configurePolicy(control), { action: "policy.put", access: "write" }),
    watch(admin, "listPolicies", "read", listPolicies(control), { action: "policy.list", access: "read" }),
  ];
  return [
    ...methods,
    ...[...methods, unary(sluice, "lease", "check", lease)].map(withoutPackage),

    unary(ratelimiter, "consumeAndCheckLimit", "check", consumeAndCheckLimit),
    unary(ratelimiter, "getCurrentConfig", "read", getCurrentConfig),
    unary(ratelimiter, "getBucketStatus", "read", getBucketStatus),
  ];
}

/** The same method as `/RateLimiter/<name>`: some clients know the service without a package. */
function withoutPackage(method: Method): Method {
  const { path } = method.definition;
  return {
    ...method,
    definition: { ...method.definition, path: `/RateLimiter${path.slice(path.lastIndexOf("/"))}` },
  };
}
