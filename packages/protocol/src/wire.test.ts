import { fromBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type FieldDescriptorProto,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { CheckRequest, grpcService, Policy, RateLimiterDefinition } from "./index.ts";
import { fileDescriptors } from "./reflection.ts";

const files = fileDescriptors.map(({ base64 }) => fromBinary(FileDescriptorProtoSchema, Buffer.from(base64, "base64")));

/** `Message.field = number type`, for every field of a package. */
function listFields(packageName: string): readonly string[] {
  const visit = (scope: string, message: DescriptorProto): readonly string[] => [
    ...message.field.map((field) => `${scope}${message.name}.${field.name} = ${field.number} ${renderType(field)}`),
    ...message.nestedType.flatMap((nested) => visit(`${scope}${message.name}.`, nested)),
    ...message.enumType.flatMap(({ name, value }) =>
      value.map((one) => `${scope}${message.name}.${name}.${one.name} = ${one.number}`),
    ),
  ];
  return files
    .filter((file) => file.package === packageName)
    .flatMap((file) => [
      ...file.messageType.flatMap((message) => visit("", message)),
      ...file.enumType.flatMap(({ name, value }) => value.map((one) => `${name}.${one.name} = ${one.number}`)),
    ]);
}

function renderType({ label, proto3Optional, type, typeName }: FieldDescriptorProto): string {
  const modifier = proto3Optional ? "optional " : label === Label.REPEATED ? "repeated " : "";
  return modifier + (typeName === "" ? Type[type]!.toLowerCase() : typeName.replace(/^.*\.(?=[A-Z])/, ""));
}

function listMethods(packageName: string): readonly string[] {
  const short = (name: string): string => name.replace(/^.*\./, "");
  return files
    .filter((file) => file.package === packageName)
    .flatMap(({ service }) =>
      service.flatMap(({ name, method }) =>
        method.map((one) => `${name}.${one.name} ${short(one.inputType)} ${short(one.outputType)}`),
      ),
    );
}

describe("numbers and types on the wire", () => {
  it("of ratelimiter.v1 match its clients", () => {
    expect(listMethods("ratelimiter.v1")).toEqual([
      "RateLimiterService.ConsumeAndCheckLimit CheckRequest CheckResponse",
      "RateLimiterService.GetCurrentConfig ConfigRequest ConfigResponse",
      "RateLimiterService.GetBucketStatus StatusRequest StatusResponse",
    ]);
    expect(listFields("ratelimiter.v1")).toEqual([
      "CheckRequest.domain = 1 optional string",
      "CheckRequest.limit_key = 2 string",
      "CheckRequest.cost = 3 optional int32",
      "CheckResponse.allowed = 1 bool",
      "CheckResponse.remaining_capacity = 2 double",
      "CheckResponse.limiting_rate_index = 3 int32",
      "CheckResponse.deny_count = 4 int64",
      "ConfigResponse.configs = 1 repeated DomainConfig",
      "DomainConfig.domain = 1 string",
      "DomainConfig.prefix_key = 2 string",
      "DomainConfig.policies = 3 repeated RatePolicy",
      "RatePolicy.flow_rate_per_second = 1 double",
      "RatePolicy.burst_capacity = 2 int64",
      "RatePolicy.name = 3 string",
      "StatusRequest.domain = 1 optional string",
      "StatusRequest.limit_key = 2 string",
      "StatusResponse.levels = 1 repeated BucketLevel",
      "StatusResponse.last_update_timestamp = 2 int64",
      "StatusResponse.deny_count = 3 int64",
      "BucketLevel.current_level = 1 double",
      "BucketLevel.flow_rate = 2 double",
      "BucketLevel.burst_capacity = 3 int64",
      "BucketLevel.remaining_capacity = 4 double",
    ]);
  });

  it("of Envoy's rate limit service are Envoy's", () => {
    expect(listMethods("envoy.service.ratelimit.v3")).toEqual([
      "RateLimitService.ShouldRateLimit RateLimitRequest RateLimitResponse",
    ]);
    const units = ["UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR"];
    expect(listFields("envoy.service.ratelimit.v3")).toEqual([
      "RateLimitRequest.domain = 1 string",
      "RateLimitRequest.descriptors = 2 repeated RateLimitDescriptor",
      "RateLimitRequest.hits_addend = 3 uint32",
      "RateLimitResponse.overall_code = 1 Code",
      "RateLimitResponse.statuses = 2 repeated DescriptorStatus",
      "RateLimitResponse.response_headers_to_add = 3 repeated HeaderValue",
      "RateLimitResponse.request_headers_to_add = 4 repeated HeaderValue",
      "RateLimitResponse.raw_body = 5 bytes",
      "RateLimitResponse.dynamic_metadata = 6 Struct",
      "RateLimitResponse.quota = 7 Quota",
      "RateLimitResponse.RateLimit.requests_per_unit = 1 uint32",
      "RateLimitResponse.RateLimit.unit = 2 Unit",
      "RateLimitResponse.RateLimit.name = 3 string",
      ...[...units, "WEEK"].map((unit, number) => `RateLimitResponse.RateLimit.Unit.${unit} = ${number}`),
      "RateLimitResponse.Quota.requests = 1 uint32",
      "RateLimitResponse.Quota.valid_until = 2 Timestamp",
      "RateLimitResponse.Quota.id = 3 string",
      "RateLimitResponse.DescriptorStatus.code = 1 Code",
      "RateLimitResponse.DescriptorStatus.current_limit = 2 RateLimit",
      "RateLimitResponse.DescriptorStatus.limit_remaining = 3 uint32",
      "RateLimitResponse.DescriptorStatus.duration_until_reset = 4 Duration",
      "RateLimitResponse.DescriptorStatus.quota = 5 Quota",
      "RateLimitResponse.Code.UNKNOWN = 0",
      "RateLimitResponse.Code.OK = 1",
      "RateLimitResponse.Code.OVER_LIMIT = 2",
    ]);
    expect(listFields("envoy.extensions.common.ratelimit.v3")).toEqual([
      "RateLimitDescriptor.entries = 1 repeated Entry",
      "RateLimitDescriptor.limit = 2 RateLimitOverride",
      "RateLimitDescriptor.hits_addend = 3 UInt64Value",
      "RateLimitDescriptor.is_negative_hits = 4 bool",
      "RateLimitDescriptor.Entry.key = 1 string",
      "RateLimitDescriptor.Entry.value = 2 string",
      "RateLimitDescriptor.RateLimitOverride.requests_per_unit = 1 uint32",
      "RateLimitDescriptor.RateLimitOverride.unit = 2 RateLimitUnit",
    ]);
    expect(listFields("envoy.type.v3")).toEqual(units.map((unit, number) => `RateLimitUnit.${unit} = ${number}`));
    expect(listFields("envoy.config.core.v3")).toEqual([
      "HeaderValue.key = 1 string",
      "HeaderValue.value = 2 string",
      "HeaderValue.raw_value = 3 bytes",
    ]);
  });

  it("of CheckAndIncrement and CheckRateLimit match their specification", () => {
    const fields = listFields("sluice.v1");
    const of = (message: string): readonly string[] => fields.filter((field) => field.startsWith(`${message}.`));
    expect(of("CheckAndIncrementRequest").filter((field) => !field.includes("Entry."))).toEqual([
      "CheckAndIncrementRequest.policy_id = 1 string",
      "CheckAndIncrementRequest.dimensions = 2 repeated DimensionsEntry",
      "CheckAndIncrementRequest.cost = 3 int32",
      "CheckAndIncrementRequest.request_id = 4 string",
      // Additions to the specification.
      "CheckAndIncrementRequest.domain = 5 string",
    ]);
    expect(of("CheckAndIncrementResponse")).toEqual([
      "CheckAndIncrementResponse.allowed = 1 bool",
      "CheckAndIncrementResponse.remaining = 2 int32",
      "CheckAndIncrementResponse.reset_unix_ms = 3 int64",
      "CheckAndIncrementResponse.retry_after_ms = 4 int32",
      "CheckAndIncrementResponse.policy_version = 5 string",
      "CheckAndIncrementResponse.matched_quota = 6 Quota",
      // Additions to the specification.
      "CheckAndIncrementResponse.degraded = 7 bool",
      "CheckAndIncrementResponse.degraded_reason = 8 string",
    ]);
    expect(of("CheckRateLimitRequest").map((field) => field.split(" = ")[0]!.split(".")[1])).toEqual([
      "identifier",
      "dimension",
      "endpoint",
      "cost",
      "timestamp",
    ]);
    expect(of("CheckRateLimitResponse").map((field) => field.split(" = ")[0]!.split(".")[1])).toEqual([
      "allowed",
      "current_count",
      "limit",
      "remaining",
      "reset_at",
      "retry_after",
      // Additions to the specification.
      "degraded",
      "degraded_reason",
    ]);
  });

  it("of Lease match docs/lease-protocol.md", () => {
    expect(listMethods("sluice.v1")).toContain("RateLimiter.Lease LeaseRequest LeaseResponse");
    expect(listFields("sluice.v1").filter((field) => /^(Lease|SettledGrant)/.test(field))).toEqual([
      "LeaseRequest.check = 1 CheckRequest",
      "LeaseRequest.want = 2 uint32",
      "LeaseRequest.hold_ms = 3 uint32",
      "LeaseRequest.settled = 4 SettledGrant",
      "SettledGrant.epoch = 1 uint64",
      "SettledGrant.spent = 2 uint32",
      "SettledGrant.kept = 3 uint32",
      "SettledGrant.returned = 4 uint32",
      "LeaseResponse.granted = 1 uint32",
      "LeaseResponse.epoch = 2 uint64",
      "LeaseResponse.unspent = 3 uint64",
      "LeaseResponse.lease_ms = 4 uint32",
      "LeaseResponse.stale_ms = 5 uint32",
      "LeaseResponse.cost = 6 uint32",
      "LeaseResponse.decision = 7 Decision",
      "LeaseResponse.forgotten = 8 uint32",
    ]);
  });

  it("of a policy are in the order of their specification, with additions at the end", () => {
    expect(listMethods("sluice.v1").filter((method) => method.startsWith("PolicyAdmin."))).toEqual([
      "PolicyAdmin.ConfigurePolicy Policy PolicyAck",
      "PolicyAdmin.ListPolicies ListPoliciesRequest Policy",
    ]);
    const fields = listFields("sluice.v1").filter((field) => /^Policy(Window)?\.(?!CostMapEntry)/.test(field));
    expect(fields).toEqual([
      "Policy.policy_id = 1 string",
      "Policy.version = 2 int64",
      "Policy.rule_type = 3 RuleType",
      "Policy.windows = 4 repeated PolicyWindow",
      "Policy.dimensions = 5 repeated string",
      "Policy.fail_policy = 6 FailPolicy",
      "Policy.cost_map = 7 repeated CostMapEntry",
      "Policy.owner_team = 8 string",
      "Policy.created_at = 9 Timestamp",
      "Policy.valid_from = 10 Timestamp",
      "Policy.rollout_pct = 11 optional double",
      "Policy.document_json = 12 string",
      "Policy.dry_run = 13 bool",
      "Policy.why = 14 string",
      "Policy.domain = 15 string",
      "Policy.fields_complete = 16 bool",
      "PolicyWindow.span_ms = 1 int64",
      "PolicyWindow.limit = 2 double",
      "PolicyWindow.burst = 3 optional double",
    ]);
  });

  it("has no cost for an empty endpoint", () => {
    const bytes = Policy.encode(Policy.fromPartial({ costMap: { "/embed": 3 } })).finish();
    expect(Policy.decode(bytes).costMap).toEqual({ "/embed": 3 });
    const hidden = Buffer.from(bytes).toString("latin1").replace("\x0a\x06/embed", "\x0a\x09__proto__");
    // Three more characters in the key of the entry.
    const longer = Buffer.from(hidden, "latin1");
    longer[1]! += 3;
    expect(() => Policy.decode(longer)).toThrow("cost_map.__proto__");
  });

  it("of health and reflection are gRPC's", () => {
    expect(listFields("grpc.health.v1")).toContain("HealthCheckResponse.status = 1 ServingStatus");
    expect(listFields("grpc.health.v1")).toContain("HealthCheckResponse.ServingStatus.NOT_SERVING = 2");
    expect(listFields("grpc.reflection.v1")).toContain("ServerReflectionRequest.file_containing_symbol = 4 string");
    expect(listFields("grpc.reflection.v1")).toContain(
      "ServerReflectionResponse.file_descriptor_response = 4 FileDescriptorResponse",
    );
  });
});

describe("a service for grpc-js", () => {
  const { check } = grpcService(RateLimiterDefinition);

  it("has paths, and encodes and decodes its messages", () => {
    expect(check.path).toBe("/sluice.v1.RateLimiter/Check");
    const request = CheckRequest.fromPartial({ domain: "d", dimensions: { user: "ünï" }, cost: 0, policies: ["p"] });
    expect(check.requestDeserialize(check.requestSerialize(request))).toEqual(request);
  });

  it("returns separate bytes for each message, and recovers from one that cannot be written", () => {
    const first = check.requestSerialize(CheckRequest.fromPartial({ domain: "first" }));
    expect(() => check.requestSerialize(CheckRequest.fromPartial({ domain: "bad", cost: 0.5 }))).toThrow(/0\.5/);
    const second = check.requestSerialize(CheckRequest.fromPartial({ domain: "second" }));
    expect([first, second].map((bytes) => check.requestDeserialize(bytes).domain)).toEqual(["first", "second"]);
  });
});
