export { HeaderValue } from "./generated/envoy/config/core/v3/base.ts";
export {
  RateLimitDescriptor,
  RateLimitDescriptor_Entry,
  RateLimitDescriptor_RateLimitOverride,
} from "./generated/envoy/extensions/common/ratelimit/v3/ratelimit.ts";
export {
  RateLimitRequest,
  RateLimitResponse,
  RateLimitResponse_Code,
  RateLimitResponse_DescriptorStatus,
  RateLimitResponse_Quota,
  RateLimitResponse_RateLimit,
  RateLimitResponse_RateLimit_Unit,
  RateLimitServiceDefinition,
} from "./generated/envoy/service/ratelimit/v3/rls.ts";
export { RateLimitUnit } from "./generated/envoy/type/v3/ratelimit_unit.ts";
export { Duration } from "./generated/google/protobuf/duration.ts";
export { Timestamp } from "./generated/google/protobuf/timestamp.ts";
