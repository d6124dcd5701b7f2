import { CheckBatchRequest, CheckRequest, RateLimiterDefinition as sluice } from "@sluice/protocol";
import { HealthDefinition as health } from "@sluice/protocol/health";
import { ServerReflectionDefinition as reflection } from "@sluice/protocol/reflection";
import { batchCodec, decisionCodec, writeDecision } from "./batch-codec.ts";
import { envoyMethods } from "./envoy-methods.ts";
import { charge } from "./handlers/charge.ts";
import { check } from "./handlers/check.ts";
import { checkBatch } from "./handlers/check-batch.ts";
import { checkStream } from "./handlers/check-stream.ts";
import { giveBack } from "./handlers/give-back.ts";
import { healthCheck } from "./handlers/health-check.ts";
import { healthList } from "./handlers/health-list.ts";
import { healthWatch } from "./handlers/health-watch.ts";
import { cancel, commit, extend, reserve } from "./handlers/holds.ts";
import { lease } from "./handlers/lease.ts";
import { reflect } from "./handlers/reflect.ts";
import { type Method, stream, unary, watch } from "./method.ts";
import { readBatch, readSingleCheck } from "./read-batch.ts";

/** The same service under its older name, whose messages are the same. */
const reflectionAlpha = { ...reflection, fullName: "grpc.reflection.v1alpha.ServerReflection" };

const { check: checkMethod, checkBatch: batchMethod, checkStream: streamMethod } = sluice.methods;
const checkRequests = { ...CheckRequest, decode: readSingleCheck };
const batchRequests = { ...CheckBatchRequest, decode: readBatch };
/** Checks are the busiest, and have separate codecs. */
const checks = {
  ...sluice,
  methods: {
    check: { ...checkMethod, requestType: checkRequests, responseType: decisionCodec },
    checkBatch: { ...batchMethod, requestType: batchRequests, responseType: batchCodec },
    checkStream: { ...streamMethod, requestType: batchRequests, responseType: batchCodec },
  },
};

/** Sluice's own methods, Envoy's, health and reflection. */
export const nativeMethods: readonly Method[] = [
  unary(checks, "check", "check", check, undefined, writeDecision),
  unary(checks, "checkBatch", "check", checkBatch),
  stream(checks, "checkStream", "check", checkStream),
  unary(sluice, "charge", "check", charge),
  unary(sluice, "giveBack", "check", giveBack),
  unary(sluice, "reserve", "check", reserve),
  unary(sluice, "commit", "check", commit),
  unary(sluice, "extend", "check", extend),
  unary(sluice, "cancel", "check", cancel),
  unary(sluice, "lease", "check", lease),

  ...envoyMethods,

  unary(health, "check", "nothing", healthCheck),
  unary(health, "list", "nothing", healthList),
  watch(health, "watch", "nothing", healthWatch),
  stream(reflection, "serverReflectionInfo", "nothing", reflect),
  stream(reflectionAlpha, "serverReflectionInfo", "nothing", reflect),
];
