export {
  BucketLevel,
  CheckRequest,
  CheckResponse,
  ConfigRequest,
  ConfigResponse,
  DomainConfig,
  RateLimiterServiceDefinition,
  RatePolicy,
  StatusRequest,
  StatusResponse,
} from "./generated/ratelimiter/v1/ratelimiter.ts";
