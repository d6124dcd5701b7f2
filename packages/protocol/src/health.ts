export {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus,
  HealthDefinition,
  HealthListRequest,
  HealthListResponse,
} from "./generated/grpc/health/v1/health.ts";
