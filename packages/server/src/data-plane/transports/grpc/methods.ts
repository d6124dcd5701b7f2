import { CheckBatchRequest, RateLimiterDefinition as sluice } from "@sluice/protocol";
import { HealthDefinition as health } from "@sluice/protocol/health";
import { ServerReflectionDefinition as reflection } from "@sluice/protocol/reflection";
import { batchCodec } from "./batch-codec.ts";
import { envoyMethods } from "./envoy-methods.ts";
import { charge } from "./handlers/charge.ts";
import { check } from "./handlers/check.ts";
import { checkBatch } from "./handlers/check-batch.ts";
import { checkStream } from "./handlers/check-stream.ts";
import { giveBack } from "./handlers/give-back.ts";
import { healthCheck } from "./handlers/health-check.ts";
import { healthList } from "./handlers/health-list.ts";
import { healthWatch } from "./handlers/health-watch.ts";
import { lease } from "./handlers/lease.ts";
import { reflect } from "./handlers/reflect.ts";
import { type Method, stream, unary, watch } from "./method.ts";
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

/** Sluice's own methods, Envoy's, health and reflection. */
export const nativeMethods: readonly Method[] = [
  unary(sluice, "check", "check", check),
  unary(batches, "checkBatch", "check", checkBatch),
  stream(batches, "checkStream", "check", checkStream),
  unary(sluice, "charge", "check", charge),
  unary(sluice, "giveBack", "check", giveBack),
  unary(sluice, "lease", "check", lease),

  ...envoyMethods,

  unary(health, "check", "nothing", healthCheck),
  unary(health, "list", "nothing", healthList),
  watch(health, "watch", "nothing", healthWatch),
  stream(reflection, "serverReflectionInfo", "nothing", reflect),
  stream(reflectionAlpha, "serverReflectionInfo", "nothing", reflect),
];
