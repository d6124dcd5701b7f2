import { PolicyAdminDefinition as admin, CheckBatchRequest, RateLimiterDefinition as sluice } from "@sluice/protocol";
import { HealthDefinition as health } from "@sluice/protocol/health";
import { RateLimiterServiceDefinition as ratelimiter } from "@sluice/protocol/ratelimiter";
import { ServerReflectionDefinition as reflection } from "@sluice/protocol/reflection";
import { batchCodec } from "./batch-codec.ts";
import { envoyMethods } from "./envoy-methods.ts";
import { charge } from "./handlers/charge.ts";
import { check } from "./handlers/check.ts";
import { checkAndIncrement } from "./handlers/check-and-increment.ts";
import { checkBatch } from "./handlers/check-batch.ts";
import { checkRateLimit } from "./handlers/check-rate-limit.ts";
import { checkStream } from "./handlers/check-stream.ts";
import { configurePolicy } from "./handlers/configure-policy.ts";
import { consumeAndCheckLimit } from "./handlers/consume-and-check-limit.ts";
import { getBucketStatus } from "./handlers/get-bucket-status.ts";
import { getCurrentConfig } from "./handlers/get-current-config.ts";
import { getRemainingQuota } from "./handlers/get-remaining-quota.ts";
import { getUsage } from "./handlers/get-usage.ts";
import { giveBack } from "./handlers/give-back.ts";
import { healthCheck } from "./handlers/health-check.ts";
import { healthList } from "./handlers/health-list.ts";
import { healthWatch } from "./handlers/health-watch.ts";
import { lease } from "./handlers/lease.ts";
import { listPolicies } from "./handlers/list-policies.ts";
import { reflect } from "./handlers/reflect.ts";
import { resetKey } from "./handlers/reset-key.ts";
import { resetLimit } from "./handlers/reset-limit.ts";
import { type Method, type MethodAudit, stream, unary, watch } from "./method.ts";
import { readBatch } from "./read-batch.ts";

/** The same service under its older name, whose messages are the same. */
const reflectionAlpha = { ...reflection, fullName: "grpc.reflection.v1alpha.ServerReflection" };

const { checkBatch: batchMethod, checkStream: streamMethod } = sluice.methods;
const batchRequests = { ...CheckBatchRequest, decode: readBatch };
/** Batches are the busiest, and have codecs of their own. */
const batches = {
  ...sluice,
  methods: {
    checkBatch: { ...batchMethod, requestType: batchRequests, responseType: batchCodec },
    checkStream: { ...streamMethod, requestType: batchRequests, responseType: batchCodec },
  },
};

const reset: MethodAudit = { action: "subject.reset" };

/** Those that callers also know from a service without a package. */
const alsoBare: readonly Method[] = [
  unary(sluice, "lease", "check", lease),
  unary(sluice, "checkRateLimit", "check", checkRateLimit),
  unary(sluice, "getRemainingQuota", "read", getRemainingQuota),
  unary(sluice, "resetLimit", "operate", resetLimit, reset),
  unary(sluice, "checkAndIncrement", "check", checkAndIncrement),
  unary(sluice, "getUsage", "read", getUsage),
  unary(sluice, "resetKey", "operate", resetKey, reset),

  unary(admin, "configurePolicy", "edit", configurePolicy, { action: "policy.put", access: "write" }),
  watch(admin, "listPolicies", "read", listPolicies, { action: "policy.list", access: "read" }),
];

/** The same method as `/RateLimiter/<name>`, whichever service it belongs to here. */
function withoutPackage(method: Method): Method {
  const { path } = method.definition;
  return {
    ...method,
    definition: { ...method.definition, path: `/RateLimiter${path.slice(path.lastIndexOf("/"))}` },
  };
}

/** Every method that is answered. */
export const methods: readonly Method[] = [
  unary(sluice, "check", "check", check),
  unary(batches, "checkBatch", "check", checkBatch),
  stream(batches, "checkStream", "check", checkStream),
  unary(sluice, "charge", "check", charge),
  unary(sluice, "giveBack", "check", giveBack),
  ...alsoBare,
  ...alsoBare.map(withoutPackage),

  unary(ratelimiter, "consumeAndCheckLimit", "check", consumeAndCheckLimit),
  unary(ratelimiter, "getCurrentConfig", "read", getCurrentConfig),
  unary(ratelimiter, "getBucketStatus", "read", getBucketStatus),

  ...envoyMethods,

  unary(health, "check", "nothing", healthCheck),
  unary(health, "list", "nothing", healthList),
  watch(health, "watch", "nothing", healthWatch),
  stream(reflection, "serverReflectionInfo", "nothing", reflect),
  stream(reflectionAlpha, "serverReflectionInfo", "nothing", reflect),
];
