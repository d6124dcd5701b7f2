// Made from the .proto files by `npm run generate`. Do not edit.

/** A .proto file as servers tell of it by reflection. */
export interface FileDescriptor {
  /** `sluice/v1/rate_limiter.proto` */
  readonly name: string;
  /** The files that it imports. */
  readonly imports: readonly string[];
  /** Full names of its services. */
  readonly services: readonly string[];
  /** Full names of its messages, enums, services and methods. */
  readonly symbols: readonly string[];
  /** A serialized google.protobuf.FileDescriptorProto. */
  readonly base64: string;
}

export const fileDescriptors: readonly FileDescriptor[] = [
  {
    "name": "envoy/config/core/v3/base.proto",
    "imports": [],
    "services": [],
    "symbols": [
      "envoy.config.core.v3.HeaderValue"
    ],
    "base64": "Ch9lbnZveS9jb25maWcvY29yZS92My9iYXNlLnByb3RvEhRlbnZveS5jb25maWcuY29yZS52MyJSCgtIZWFkZXJWYWx1ZRIQCgNrZXkYASABKAlSA2tleRIUCgV2YWx1ZRgCIAEoCVIFdmFsdWUSGwoJcmF3X3ZhbHVlGAMgASgMUghyYXdWYWx1ZWIGcHJvdG8z0vYDBAgAGAA="
  },
  {
    "name": "envoy/type/v3/ratelimit_unit.proto",
    "imports": [],
    "services": [],
    "symbols": [
      "envoy.type.v3.RateLimitUnit"
    ],
    "base64": "CiJlbnZveS90eXBlL3YzL3JhdGVsaW1pdF91bml0LnByb3RvEg1lbnZveS50eXBlLnYzKlwKDVJhdGVMaW1pdFVuaXQSCwoHVU5LTk9XThAAEgoKBlNFQ09ORBABEgoKBk1JTlVURRACEggKBEhPVVIQAxIHCgNEQVkQBBIJCgVNT05USBAFEggKBFlFQVIQBmIGcHJvdG8z0vYDBAgAGAA="
  },
  {
    "name": "google/protobuf/wrappers.proto",
    "imports": [],
    "services": [],
    "symbols": [
      "google.protobuf.DoubleValue",
      "google.protobuf.FloatValue",
      "google.protobuf.Int64Value",
      "google.protobuf.UInt64Value",
      "google.protobuf.Int32Value",
      "google.protobuf.UInt32Value",
      "google.protobuf.BoolValue",
      "google.protobuf.StringValue",
      "google.protobuf.BytesValue"
    ],
    "base64": "Ch5nb29nbGUvcHJvdG9idWYvd3JhcHBlcnMucHJvdG8SD2dvb2dsZS5wcm90b2J1ZiIjCgtEb3VibGVWYWx1ZRIUCgV2YWx1ZRgBIAEoAVIFdmFsdWUiIgoKRmxvYXRWYWx1ZRIUCgV2YWx1ZRgBIAEoAlIFdmFsdWUiIgoKSW50NjRWYWx1ZRIUCgV2YWx1ZRgBIAEoA1IFdmFsdWUiIwoLVUludDY0VmFsdWUSFAoFdmFsdWUYASABKARSBXZhbHVlIiIKCkludDMyVmFsdWUSFAoFdmFsdWUYASABKAVSBXZhbHVlIiMKC1VJbnQzMlZhbHVlEhQKBXZhbHVlGAEgASgNUgV2YWx1ZSIhCglCb29sVmFsdWUSFAoFdmFsdWUYASABKAhSBXZhbHVlIiMKC1N0cmluZ1ZhbHVlEhQKBXZhbHVlGAEgASgJUgV2YWx1ZSIiCgpCeXRlc1ZhbHVlEhQKBXZhbHVlGAEgASgMUgV2YWx1ZUKDAQoTY29tLmdvb2dsZS5wcm90b2J1ZkINV3JhcHBlcnNQcm90b1ABWjFnb29nbGUuZ29sYW5nLm9yZy9wcm90b2J1Zi90eXBlcy9rbm93bi93cmFwcGVyc3Bi+AEBogIDR1BCqgIeR29vZ2xlLlByb3RvYnVmLldlbGxLbm93blR5cGVzYgZwcm90bzPS9gMECAEYAA=="
  },
  {
    "name": "envoy/extensions/common/ratelimit/v3/ratelimit.proto",
    "imports": [
      "envoy/type/v3/ratelimit_unit.proto",
      "google/protobuf/wrappers.proto"
    ],
    "services": [],
    "symbols": [
      "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor",
      "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry",
      "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.RateLimitOverride"
    ],
    "base64": "CjRlbnZveS9leHRlbnNpb25zL2NvbW1vbi9yYXRlbGltaXQvdjMvcmF0ZWxpbWl0LnByb3RvEiRlbnZveS5leHRlbnNpb25zLmNvbW1vbi5yYXRlbGltaXQudjMaImVudm95L3R5cGUvdjMvcmF0ZWxpbWl0X3VuaXQucHJvdG8aHmdvb2dsZS9wcm90b2J1Zi93cmFwcGVycy5wcm90byLgAwoTUmF0ZUxpbWl0RGVzY3JpcHRvchJZCgdlbnRyaWVzGAEgAygLMj8uZW52b3kuZXh0ZW5zaW9ucy5jb21tb24ucmF0ZWxpbWl0LnYzLlJhdGVMaW1pdERlc2NyaXB0b3IuRW50cnlSB2VudHJpZXMSYQoFbGltaXQYAiABKAsySy5lbnZveS5leHRlbnNpb25zLmNvbW1vbi5yYXRlbGltaXQudjMuUmF0ZUxpbWl0RGVzY3JpcHRvci5SYXRlTGltaXRPdmVycmlkZVIFbGltaXQSPQoLaGl0c19hZGRlbmQYAyABKAsyHC5nb29nbGUucHJvdG9idWYuVUludDY0VmFsdWVSCmhpdHNBZGRlbmQSKAoQaXNfbmVnYXRpdmVfaGl0cxgEIAEoCFIOaXNOZWdhdGl2ZUhpdHMaLwoFRW50cnkSEAoDa2V5GAEgASgJUgNrZXkSFAoFdmFsdWUYAiABKAlSBXZhbHVlGnEKEVJhdGVMaW1pdE92ZXJyaWRlEioKEXJlcXVlc3RzX3Blcl91bml0GAEgASgNUg9yZXF1ZXN0c1BlclVuaXQSMAoEdW5pdBgCIAEoDjIcLmVudm95LnR5cGUudjMuUmF0ZUxpbWl0VW5pdFIEdW5pdGIGcHJvdG8z0vYDBAgAGAA="
  },
  {
    "name": "google/protobuf/duration.proto",
    "imports": [],
    "services": [],
    "symbols": [
      "google.protobuf.Duration"
    ],
    "base64": "Ch5nb29nbGUvcHJvdG9idWYvZHVyYXRpb24ucHJvdG8SD2dvb2dsZS5wcm90b2J1ZiI6CghEdXJhdGlvbhIYCgdzZWNvbmRzGAEgASgDUgdzZWNvbmRzEhQKBW5hbm9zGAIgASgFUgVuYW5vc0KDAQoTY29tLmdvb2dsZS5wcm90b2J1ZkINRHVyYXRpb25Qcm90b1ABWjFnb29nbGUuZ29sYW5nLm9yZy9wcm90b2J1Zi90eXBlcy9rbm93bi9kdXJhdGlvbnBi+AEBogIDR1BCqgIeR29vZ2xlLlByb3RvYnVmLldlbGxLbm93blR5cGVzYgZwcm90bzPS9gMECAEYAA=="
  },
  {
    "name": "google/protobuf/struct.proto",
    "imports": [],
    "services": [],
    "symbols": [
      "google.protobuf.Struct",
      "google.protobuf.Struct.FieldsEntry",
      "google.protobuf.Value",
      "google.protobuf.ListValue",
      "google.protobuf.NullValue"
    ],
    "base64": "Chxnb29nbGUvcHJvdG9idWYvc3RydWN0LnByb3RvEg9nb29nbGUucHJvdG9idWYimAEKBlN0cnVjdBI7CgZmaWVsZHMYASADKAsyIy5nb29nbGUucHJvdG9idWYuU3RydWN0LkZpZWxkc0VudHJ5UgZmaWVsZHMaUQoLRmllbGRzRW50cnkSEAoDa2V5GAEgASgJUgNrZXkSLAoFdmFsdWUYAiABKAsyFi5nb29nbGUucHJvdG9idWYuVmFsdWVSBXZhbHVlOgI4ASKyAgoFVmFsdWUSOwoKbnVsbF92YWx1ZRgBIAEoDjIaLmdvb2dsZS5wcm90b2J1Zi5OdWxsVmFsdWVIAFIJbnVsbFZhbHVlEiMKDG51bWJlcl92YWx1ZRgCIAEoAUgAUgtudW1iZXJWYWx1ZRIjCgxzdHJpbmdfdmFsdWUYAyABKAlIAFILc3RyaW5nVmFsdWUSHwoKYm9vbF92YWx1ZRgEIAEoCEgAUglib29sVmFsdWUSPAoMc3RydWN0X3ZhbHVlGAUgASgLMhcuZ29vZ2xlLnByb3RvYnVmLlN0cnVjdEgAUgtzdHJ1Y3RWYWx1ZRI7CgpsaXN0X3ZhbHVlGAYgASgLMhouZ29vZ2xlLnByb3RvYnVmLkxpc3RWYWx1ZUgAUglsaXN0VmFsdWVCBgoEa2luZCI7CglMaXN0VmFsdWUSLgoGdmFsdWVzGAEgAygLMhYuZ29vZ2xlLnByb3RvYnVmLlZhbHVlUgZ2YWx1ZXMqGwoJTnVsbFZhbHVlEg4KCk5VTExfVkFMVUUQAEJ/ChNjb20uZ29vZ2xlLnByb3RvYnVmQgtTdHJ1Y3RQcm90b1ABWi9nb29nbGUuZ29sYW5nLm9yZy9wcm90b2J1Zi90eXBlcy9rbm93bi9zdHJ1Y3RwYvgBAaICA0dQQqoCHkdvb2dsZS5Qcm90b2J1Zi5XZWxsS25vd25UeXBlc2IGcHJvdG8z0vYDBAgBGAA="
  },
  {
    "name": "google/protobuf/timestamp.proto",
    "imports": [],
    "services": [],
    "symbols": [
      "google.protobuf.Timestamp"
    ],
    "base64": "Ch9nb29nbGUvcHJvdG9idWYvdGltZXN0YW1wLnByb3RvEg9nb29nbGUucHJvdG9idWYiOwoJVGltZXN0YW1wEhgKB3NlY29uZHMYASABKANSB3NlY29uZHMSFAoFbmFub3MYAiABKAVSBW5hbm9zQoUBChNjb20uZ29vZ2xlLnByb3RvYnVmQg5UaW1lc3RhbXBQcm90b1ABWjJnb29nbGUuZ29sYW5nLm9yZy9wcm90b2J1Zi90eXBlcy9rbm93bi90aW1lc3RhbXBwYvgBAaICA0dQQqoCHkdvb2dsZS5Qcm90b2J1Zi5XZWxsS25vd25UeXBlc2IGcHJvdG8z0vYDBAgBGAA="
  },
  {
    "name": "envoy/service/ratelimit/v3/rls.proto",
    "imports": [
      "envoy/config/core/v3/base.proto",
      "envoy/extensions/common/ratelimit/v3/ratelimit.proto",
      "google/protobuf/duration.proto",
      "google/protobuf/struct.proto",
      "google/protobuf/timestamp.proto"
    ],
    "services": [
      "envoy.service.ratelimit.v3.RateLimitService"
    ],
    "symbols": [
      "envoy.service.ratelimit.v3.RateLimitRequest",
      "envoy.service.ratelimit.v3.RateLimitResponse",
      "envoy.service.ratelimit.v3.RateLimitResponse.RateLimit",
      "envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit",
      "envoy.service.ratelimit.v3.RateLimitResponse.Quota",
      "envoy.service.ratelimit.v3.RateLimitResponse.DescriptorStatus",
      "envoy.service.ratelimit.v3.RateLimitResponse.Code",
      "envoy.service.ratelimit.v3.RateLimitService",
      "envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit"
    ],
    "base64": "CiRlbnZveS9zZXJ2aWNlL3JhdGVsaW1pdC92My9ybHMucHJvdG8SGmVudm95LnNlcnZpY2UucmF0ZWxpbWl0LnYzGh9lbnZveS9jb25maWcvY29yZS92My9iYXNlLnByb3RvGjRlbnZveS9leHRlbnNpb25zL2NvbW1vbi9yYXRlbGltaXQvdjMvcmF0ZWxpbWl0LnByb3RvGh5nb29nbGUvcHJvdG9idWYvZHVyYXRpb24ucHJvdG8aHGdvb2dsZS9wcm90b2J1Zi9zdHJ1Y3QucHJvdG8aH2dvb2dsZS9wcm90b2J1Zi90aW1lc3RhbXAucHJvdG8iqAEKEFJhdGVMaW1pdFJlcXVlc3QSFgoGZG9tYWluGAEgASgJUgZkb21haW4SWwoLZGVzY3JpcHRvcnMYAiADKAsyOS5lbnZveS5leHRlbnNpb25zLmNvbW1vbi5yYXRlbGltaXQudjMuUmF0ZUxpbWl0RGVzY3JpcHRvclILZGVzY3JpcHRvcnMSHwoLaGl0c19hZGRlbmQYAyABKA1SCmhpdHNBZGRlbmQi1woKEVJhdGVMaW1pdFJlc3BvbnNlElUKDG92ZXJhbGxfY29kZRgBIAEoDjIyLmVudm95LnNlcnZpY2UucmF0ZWxpbWl0LnYzLlJhdGVMaW1pdFJlc3BvbnNlLkNvZGVSC292ZXJhbGxDb2RlEloKCHN0YXR1c2VzGAIgAygLMj4uZW52b3kuc2VydmljZS5yYXRlbGltaXQudjMuUmF0ZUxpbWl0UmVzcG9uc2UuRGVzY3JpcHRvclN0YXR1c1IIc3RhdHVzZXMSWAoXcmVzcG9uc2VfaGVhZGVyc190b19hZGQYAyADKAsyIS5lbnZveS5jb25maWcuY29yZS52My5IZWFkZXJWYWx1ZVIUcmVzcG9uc2VIZWFkZXJzVG9BZGQSVgoWcmVxdWVzdF9oZWFkZXJzX3RvX2FkZBgEIAMoCzIhLmVudm95LmNvbmZpZy5jb3JlLnYzLkhlYWRlclZhbHVlUhNyZXF1ZXN0SGVhZGVyc1RvQWRkEhkKCHJhd19ib2R5GAUgASgMUgdyYXdCb2R5EkIKEGR5bmFtaWNfbWV0YWRhdGEYBiABKAsyFy5nb29nbGUucHJvdG9idWYuU3RydWN0Ug9keW5hbWljTWV0YWRhdGESSQoFcXVvdGEYByABKAsyMy5lbnZveS5zZXJ2aWNlLnJhdGVsaW1pdC52My5SYXRlTGltaXRSZXNwb25zZS5RdW90YVIFcXVvdGEa/AEKCVJhdGVMaW1pdBIqChFyZXF1ZXN0c19wZXJfdW5pdBgBIAEoDVIPcmVxdWVzdHNQZXJVbml0ElAKBHVuaXQYAiABKA4yPC5lbnZveS5zZXJ2aWNlLnJhdGVsaW1pdC52My5SYXRlTGltaXRSZXNwb25zZS5SYXRlTGltaXQuVW5pdFIEdW5pdBISCgRuYW1lGAMgASgJUgRuYW1lIl0KBFVuaXQSCwoHVU5LTk9XThAAEgoKBlNFQ09ORBABEgoKBk1JTlVURRACEggKBEhPVVIQAxIHCgNEQVkQBBIJCgVNT05USBAFEggKBFlFQVIQBhIICgRXRUVLEAcaigEKBVF1b3RhEhoKCHJlcXVlc3RzGAEgASgNUghyZXF1ZXN0cxI9Cgt2YWxpZF91bnRpbBgCIAEoCzIaLmdvb2dsZS5wcm90b2J1Zi5UaW1lc3RhbXBIAFIKdmFsaWRVbnRpbBIOCgJpZBgDIAEoCVICaWRCFgoUZXhwaXJhdGlvbl9zcGVjaWZpZXIa+QIKEERlc2NyaXB0b3JTdGF0dXMSRgoEY29kZRgBIAEoDjIyLmVudm95LnNlcnZpY2UucmF0ZWxpbWl0LnYzLlJhdGVMaW1pdFJlc3BvbnNlLkNvZGVSBGNvZGUSXAoNY3VycmVudF9saW1pdBgCIAEoCzI3LmVudm95LnNlcnZpY2UucmF0ZWxpbWl0LnYzLlJhdGVMaW1pdFJlc3BvbnNlLlJhdGVMaW1pdFIMY3VycmVudExpbWl0EicKD2xpbWl0X3JlbWFpbmluZxgDIAEoDVIObGltaXRSZW1haW5pbmcSSwoUZHVyYXRpb25fdW50aWxfcmVzZXQYBCABKAsyGS5nb29nbGUucHJvdG9idWYuRHVyYXRpb25SEmR1cmF0aW9uVW50aWxSZXNldBJJCgVxdW90YRgFIAEoCzIzLmVudm95LnNlcnZpY2UucmF0ZWxpbWl0LnYzLlJhdGVMaW1pdFJlc3BvbnNlLlF1b3RhUgVxdW90YSIrCgRDb2RlEgsKB1VOS05PV04QABIGCgJPSxABEg4KCk9WRVJfTElNSVQQAjKCAQoQUmF0ZUxpbWl0U2VydmljZRJuCg9TaG91bGRSYXRlTGltaXQSLC5lbnZveS5zZXJ2aWNlLnJhdGVsaW1pdC52My5SYXRlTGltaXRSZXF1ZXN0Gi0uZW52b3kuc2VydmljZS5yYXRlbGltaXQudjMuUmF0ZUxpbWl0UmVzcG9uc2ViBnByb3RvM9L2AwQIABgA"
  },
  {
    "name": "google/rpc/error_details.proto",
    "imports": [],
    "services": [],
    "symbols": [
      "google.rpc.ErrorInfo",
      "google.rpc.ErrorInfo.MetadataEntry",
      "google.rpc.BadRequest",
      "google.rpc.BadRequest.FieldViolation"
    ],
    "base64": "Ch5nb29nbGUvcnBjL2Vycm9yX2RldGFpbHMucHJvdG8SCmdvb2dsZS5ycGMiuQEKCUVycm9ySW5mbxIWCgZyZWFzb24YASABKAlSBnJlYXNvbhIWCgZkb21haW4YAiABKAlSBmRvbWFpbhI/CghtZXRhZGF0YRgDIAMoCzIjLmdvb2dsZS5ycGMuRXJyb3JJbmZvLk1ldGFkYXRhRW50cnlSCG1ldGFkYXRhGjsKDU1ldGFkYXRhRW50cnkSEAoDa2V5GAEgASgJUgNrZXkSFAoFdmFsdWUYAiABKAlSBXZhbHVlOgI4ASKoAQoKQmFkUmVxdWVzdBJQChBmaWVsZF92aW9sYXRpb25zGAEgAygLMiUuZ29vZ2xlLnJwYy5CYWRSZXF1ZXN0LkZpZWxkVmlvbGF0aW9uUg9maWVsZFZpb2xhdGlvbnMaSAoORmllbGRWaW9sYXRpb24SFAoFZmllbGQYASABKAlSBWZpZWxkEiAKC2Rlc2NyaXB0aW9uGAIgASgJUgtkZXNjcmlwdGlvbmIGcHJvdG8z0vYDBAgAGAA="
  },
  {
    "name": "google/protobuf/any.proto",
    "imports": [],
    "services": [],
    "symbols": [
      "google.protobuf.Any"
    ],
    "base64": "Chlnb29nbGUvcHJvdG9idWYvYW55LnByb3RvEg9nb29nbGUucHJvdG9idWYiNgoDQW55EhkKCHR5cGVfdXJsGAEgASgJUgd0eXBlVXJsEhQKBXZhbHVlGAIgASgMUgV2YWx1ZUJ2ChNjb20uZ29vZ2xlLnByb3RvYnVmQghBbnlQcm90b1ABWixnb29nbGUuZ29sYW5nLm9yZy9wcm90b2J1Zi90eXBlcy9rbm93bi9hbnlwYqICA0dQQqoCHkdvb2dsZS5Qcm90b2J1Zi5XZWxsS25vd25UeXBlc2IGcHJvdG8z0vYDBAgBGAA="
  },
  {
    "name": "google/rpc/status.proto",
    "imports": [
      "google/protobuf/any.proto"
    ],
    "services": [],
    "symbols": [
      "google.rpc.Status"
    ],
    "base64": "Chdnb29nbGUvcnBjL3N0YXR1cy5wcm90bxIKZ29vZ2xlLnJwYxoZZ29vZ2xlL3Byb3RvYnVmL2FueS5wcm90byJmCgZTdGF0dXMSEgoEY29kZRgBIAEoBVIEY29kZRIYCgdtZXNzYWdlGAIgASgJUgdtZXNzYWdlEi4KB2RldGFpbHMYAyADKAsyFC5nb29nbGUucHJvdG9idWYuQW55UgdkZXRhaWxzYgZwcm90bzPS9gMECAAYAA=="
  },
  {
    "name": "grpc/health/v1/health.proto",
    "imports": [],
    "services": [
      "grpc.health.v1.Health"
    ],
    "symbols": [
      "grpc.health.v1.HealthCheckRequest",
      "grpc.health.v1.HealthCheckResponse",
      "grpc.health.v1.HealthCheckResponse.ServingStatus",
      "grpc.health.v1.HealthListRequest",
      "grpc.health.v1.HealthListResponse",
      "grpc.health.v1.HealthListResponse.StatusesEntry",
      "grpc.health.v1.Health",
      "grpc.health.v1.Health.Check",
      "grpc.health.v1.Health.List",
      "grpc.health.v1.Health.Watch"
    ],
    "base64": "ChtncnBjL2hlYWx0aC92MS9oZWFsdGgucHJvdG8SDmdycGMuaGVhbHRoLnYxIi4KEkhlYWx0aENoZWNrUmVxdWVzdBIYCgdzZXJ2aWNlGAEgASgJUgdzZXJ2aWNlIrEBChNIZWFsdGhDaGVja1Jlc3BvbnNlEkkKBnN0YXR1cxgBIAEoDjIxLmdycGMuaGVhbHRoLnYxLkhlYWx0aENoZWNrUmVzcG9uc2UuU2VydmluZ1N0YXR1c1IGc3RhdHVzIk8KDVNlcnZpbmdTdGF0dXMSCwoHVU5LTk9XThAAEgsKB1NFUlZJTkcQARIPCgtOT1RfU0VSVklORxACEhMKD1NFUlZJQ0VfVU5LTk9XThADIhMKEUhlYWx0aExpc3RSZXF1ZXN0IsQBChJIZWFsdGhMaXN0UmVzcG9uc2USTAoIc3RhdHVzZXMYASADKAsyMC5ncnBjLmhlYWx0aC52MS5IZWFsdGhMaXN0UmVzcG9uc2UuU3RhdHVzZXNFbnRyeVIIc3RhdHVzZXMaYAoNU3RhdHVzZXNFbnRyeRIQCgNrZXkYASABKAlSA2tleRI5CgV2YWx1ZRgCIAEoCzIjLmdycGMuaGVhbHRoLnYxLkhlYWx0aENoZWNrUmVzcG9uc2VSBXZhbHVlOgI4ATL9AQoGSGVhbHRoElAKBUNoZWNrEiIuZ3JwYy5oZWFsdGgudjEuSGVhbHRoQ2hlY2tSZXF1ZXN0GiMuZ3JwYy5oZWFsdGgudjEuSGVhbHRoQ2hlY2tSZXNwb25zZRJNCgRMaXN0EiEuZ3JwYy5oZWFsdGgudjEuSGVhbHRoTGlzdFJlcXVlc3QaIi5ncnBjLmhlYWx0aC52MS5IZWFsdGhMaXN0UmVzcG9uc2USUgoFV2F0Y2gSIi5ncnBjLmhlYWx0aC52MS5IZWFsdGhDaGVja1JlcXVlc3QaIy5ncnBjLmhlYWx0aC52MS5IZWFsdGhDaGVja1Jlc3BvbnNlMAFiBnByb3RvM9L2AwQIABgA"
  },
  {
    "name": "grpc/reflection/v1/reflection.proto",
    "imports": [],
    "services": [
      "grpc.reflection.v1.ServerReflection"
    ],
    "symbols": [
      "grpc.reflection.v1.ServerReflectionRequest",
      "grpc.reflection.v1.ExtensionRequest",
      "grpc.reflection.v1.ServerReflectionResponse",
      "grpc.reflection.v1.FileDescriptorResponse",
      "grpc.reflection.v1.ExtensionNumberResponse",
      "grpc.reflection.v1.ListServiceResponse",
      "grpc.reflection.v1.ServiceResponse",
      "grpc.reflection.v1.ErrorResponse",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1.ServerReflection.ServerReflectionInfo"
    ],
    "base64": "CiNncnBjL3JlZmxlY3Rpb24vdjEvcmVmbGVjdGlvbi5wcm90bxISZ3JwYy5yZWZsZWN0aW9uLnYxIvMCChdTZXJ2ZXJSZWZsZWN0aW9uUmVxdWVzdBISCgRob3N0GAEgASgJUgRob3N0EioKEGZpbGVfYnlfZmlsZW5hbWUYAyABKAlIAFIOZmlsZUJ5RmlsZW5hbWUSNgoWZmlsZV9jb250YWluaW5nX3N5bWJvbBgEIAEoCUgAUhRmaWxlQ29udGFpbmluZ1N5bWJvbBJiChlmaWxlX2NvbnRhaW5pbmdfZXh0ZW5zaW9uGAUgASgLMiQuZ3JwYy5yZWZsZWN0aW9uLnYxLkV4dGVuc2lvblJlcXVlc3RIAFIXZmlsZUNvbnRhaW5pbmdFeHRlbnNpb24SQgodYWxsX2V4dGVuc2lvbl9udW1iZXJzX29mX3R5cGUYBiABKAlIAFIZYWxsRXh0ZW5zaW9uTnVtYmVyc09mVHlwZRIlCg1saXN0X3NlcnZpY2VzGAcgASgJSABSDGxpc3RTZXJ2aWNlc0IRCg9tZXNzYWdlX3JlcXVlc3QiZgoQRXh0ZW5zaW9uUmVxdWVzdBInCg9jb250YWluaW5nX3R5cGUYASABKAlSDmNvbnRhaW5pbmdUeXBlEikKEGV4dGVuc2lvbl9udW1iZXIYAiABKAVSD2V4dGVuc2lvbk51bWJlciKuBAoYU2VydmVyUmVmbGVjdGlvblJlc3BvbnNlEh0KCnZhbGlkX2hvc3QYASABKAlSCXZhbGlkSG9zdBJWChBvcmlnaW5hbF9yZXF1ZXN0GAIgASgLMisuZ3JwYy5yZWZsZWN0aW9uLnYxLlNlcnZlclJlZmxlY3Rpb25SZXF1ZXN0Ug9vcmlnaW5hbFJlcXVlc3QSZgoYZmlsZV9kZXNjcmlwdG9yX3Jlc3BvbnNlGAQgASgLMiouZ3JwYy5yZWZsZWN0aW9uLnYxLkZpbGVEZXNjcmlwdG9yUmVzcG9uc2VIAFIWZmlsZURlc2NyaXB0b3JSZXNwb25zZRJyCh5hbGxfZXh0ZW5zaW9uX251bWJlcnNfcmVzcG9uc2UYBSABKAsyKy5ncnBjLnJlZmxlY3Rpb24udjEuRXh0ZW5zaW9uTnVtYmVyUmVzcG9uc2VIAFIbYWxsRXh0ZW5zaW9uTnVtYmVyc1Jlc3BvbnNlEl8KFmxpc3Rfc2VydmljZXNfcmVzcG9uc2UYBiABKAsyJy5ncnBjLnJlZmxlY3Rpb24udjEuTGlzdFNlcnZpY2VSZXNwb25zZUgAUhRsaXN0U2VydmljZXNSZXNwb25zZRJKCg5lcnJvcl9yZXNwb25zZRgHIAEoCzIhLmdycGMucmVmbGVjdGlvbi52MS5FcnJvclJlc3BvbnNlSABSDWVycm9yUmVzcG9uc2VCEgoQbWVzc2FnZV9yZXNwb25zZSJMChZGaWxlRGVzY3JpcHRvclJlc3BvbnNlEjIKFWZpbGVfZGVzY3JpcHRvcl9wcm90bxgBIAMoDFITZmlsZURlc2NyaXB0b3JQcm90byJqChdFeHRlbnNpb25OdW1iZXJSZXNwb25zZRIkCg5iYXNlX3R5cGVfbmFtZRgBIAEoCVIMYmFzZVR5cGVOYW1lEikKEGV4dGVuc2lvbl9udW1iZXIYAiADKAVSD2V4dGVuc2lvbk51bWJlciJUChNMaXN0U2VydmljZVJlc3BvbnNlEj0KB3NlcnZpY2UYASADKAsyIy5ncnBjLnJlZmxlY3Rpb24udjEuU2VydmljZVJlc3BvbnNlUgdzZXJ2aWNlIiUKD1NlcnZpY2VSZXNwb25zZRISCgRuYW1lGAEgASgJUgRuYW1lIlMKDUVycm9yUmVzcG9uc2USHQoKZXJyb3JfY29kZRgBIAEoBVIJZXJyb3JDb2RlEiMKDWVycm9yX21lc3NhZ2UYAiABKAlSDGVycm9yTWVzc2FnZTKJAQoQU2VydmVyUmVmbGVjdGlvbhJ1ChRTZXJ2ZXJSZWZsZWN0aW9uSW5mbxIrLmdycGMucmVmbGVjdGlvbi52MS5TZXJ2ZXJSZWZsZWN0aW9uUmVxdWVzdBosLmdycGMucmVmbGVjdGlvbi52MS5TZXJ2ZXJSZWZsZWN0aW9uUmVzcG9uc2UoATABYgZwcm90bzPS9gMECAAYAA=="
  },
  {
    "name": "ratelimiter/v1/ratelimiter.proto",
    "imports": [],
    "services": [
      "ratelimiter.v1.RateLimiterService"
    ],
    "symbols": [
      "ratelimiter.v1.CheckRequest",
      "ratelimiter.v1.CheckResponse",
      "ratelimiter.v1.ConfigRequest",
      "ratelimiter.v1.ConfigResponse",
      "ratelimiter.v1.DomainConfig",
      "ratelimiter.v1.RatePolicy",
      "ratelimiter.v1.StatusRequest",
      "ratelimiter.v1.StatusResponse",
      "ratelimiter.v1.BucketLevel",
      "ratelimiter.v1.RateLimiterService",
      "ratelimiter.v1.RateLimiterService.ConsumeAndCheckLimit",
      "ratelimiter.v1.RateLimiterService.GetCurrentConfig",
      "ratelimiter.v1.RateLimiterService.GetBucketStatus"
    ],
    "base64": "CiByYXRlbGltaXRlci92MS9yYXRlbGltaXRlci5wcm90bxIOcmF0ZWxpbWl0ZXIudjEidQoMQ2hlY2tSZXF1ZXN0EhsKBmRvbWFpbhgBIAEoCUgAUgZkb21haW6IAQESGwoJbGltaXRfa2V5GAIgASgJUghsaW1pdEtleRIXCgRjb3N0GAMgASgFSAFSBGNvc3SIAQFCCQoHX2RvbWFpbkIHCgVfY29zdCKnAQoNQ2hlY2tSZXNwb25zZRIYCgdhbGxvd2VkGAEgASgIUgdhbGxvd2VkEi0KEnJlbWFpbmluZ19jYXBhY2l0eRgCIAEoAVIRcmVtYWluaW5nQ2FwYWNpdHkSLgoTbGltaXRpbmdfcmF0ZV9pbmRleBgDIAEoBVIRbGltaXRpbmdSYXRlSW5kZXgSHQoKZGVueV9jb3VudBgEIAEoA1IJZGVueUNvdW50Ig8KDUNvbmZpZ1JlcXVlc3QiSAoOQ29uZmlnUmVzcG9uc2USNgoHY29uZmlncxgBIAMoCzIcLnJhdGVsaW1pdGVyLnYxLkRvbWFpbkNvbmZpZ1IHY29uZmlncyJ9CgxEb21haW5Db25maWcSFgoGZG9tYWluGAEgASgJUgZkb21haW4SHQoKcHJlZml4X2tleRgCIAEoCVIJcHJlZml4S2V5EjYKCHBvbGljaWVzGAMgAygLMhoucmF0ZWxpbWl0ZXIudjEuUmF0ZVBvbGljeVIIcG9saWNpZXMieAoKUmF0ZVBvbGljeRIvChRmbG93X3JhdGVfcGVyX3NlY29uZBgBIAEoAVIRZmxvd1JhdGVQZXJTZWNvbmQSJQoOYnVyc3RfY2FwYWNpdHkYAiABKANSDWJ1cnN0Q2FwYWNpdHkSEgoEbmFtZRgDIAEoCVIEbmFtZSJUCg1TdGF0dXNSZXF1ZXN0EhsKBmRvbWFpbhgBIAEoCUgAUgZkb21haW6IAQESGwoJbGltaXRfa2V5GAIgASgJUghsaW1pdEtleUIJCgdfZG9tYWluIpgBCg5TdGF0dXNSZXNwb25zZRIzCgZsZXZlbHMYASADKAsyGy5yYXRlbGltaXRlci52MS5CdWNrZXRMZXZlbFIGbGV2ZWxzEjIKFWxhc3RfdXBkYXRlX3RpbWVzdGFtcBgCIAEoA1ITbGFzdFVwZGF0ZVRpbWVzdGFtcBIdCgpkZW55X2NvdW50GAMgASgDUglkZW55Q291bnQipQEKC0J1Y2tldExldmVsEiMKDWN1cnJlbnRfbGV2ZWwYASABKAFSDGN1cnJlbnRMZXZlbBIbCglmbG93X3JhdGUYAiABKAFSCGZsb3dSYXRlEiUKDmJ1cnN0X2NhcGFjaXR5GAMgASgDUg1idXJzdENhcGFjaXR5Ei0KEnJlbWFpbmluZ19jYXBhY2l0eRgEIAEoAVIRcmVtYWluaW5nQ2FwYWNpdHkyjgIKElJhdGVMaW1pdGVyU2VydmljZRJTChRDb25zdW1lQW5kQ2hlY2tMaW1pdBIcLnJhdGVsaW1pdGVyLnYxLkNoZWNrUmVxdWVzdBodLnJhdGVsaW1pdGVyLnYxLkNoZWNrUmVzcG9uc2USUQoQR2V0Q3VycmVudENvbmZpZxIdLnJhdGVsaW1pdGVyLnYxLkNvbmZpZ1JlcXVlc3QaHi5yYXRlbGltaXRlci52MS5Db25maWdSZXNwb25zZRJQCg9HZXRCdWNrZXRTdGF0dXMSHS5yYXRlbGltaXRlci52MS5TdGF0dXNSZXF1ZXN0Gh4ucmF0ZWxpbWl0ZXIudjEuU3RhdHVzUmVzcG9uc2ViBnByb3RvM9L2AwQIABgA"
  },
  {
    "name": "sluice/v1/rate_limiter.proto",
    "imports": [],
    "services": [
      "sluice.v1.RateLimiter"
    ],
    "symbols": [
      "sluice.v1.CheckRequest",
      "sluice.v1.CheckRequest.DimensionsEntry",
      "sluice.v1.Decision",
      "sluice.v1.Window",
      "sluice.v1.QueuePlace",
      "sluice.v1.ShadowDenial",
      "sluice.v1.LimitDecision",
      "sluice.v1.CheckBatchRequest",
      "sluice.v1.CheckBatchResponse",
      "sluice.v1.CheckResult",
      "sluice.v1.CheckError",
      "sluice.v1.FieldProblem",
      "sluice.v1.ChargeRequest",
      "sluice.v1.ChargeRequest.DimensionsEntry",
      "sluice.v1.ChargeResponse",
      "sluice.v1.GiveBackRequest",
      "sluice.v1.GiveBackResponse",
      "sluice.v1.LeaseRequest",
      "sluice.v1.SettledGrant",
      "sluice.v1.LeaseResponse",
      "sluice.v1.CheckRateLimitRequest",
      "sluice.v1.CheckRateLimitResponse",
      "sluice.v1.GetRemainingQuotaRequest",
      "sluice.v1.GetRemainingQuotaResponse",
      "sluice.v1.ResetLimitRequest",
      "sluice.v1.ResetLimitResponse",
      "sluice.v1.CheckAndIncrementRequest",
      "sluice.v1.CheckAndIncrementRequest.DimensionsEntry",
      "sluice.v1.CheckAndIncrementResponse",
      "sluice.v1.Quota",
      "sluice.v1.GetUsageRequest",
      "sluice.v1.GetUsageRequest.DimensionsEntry",
      "sluice.v1.GetUsageResponse",
      "sluice.v1.ResetKeyRequest",
      "sluice.v1.ResetKeyRequest.DimensionsEntry",
      "sluice.v1.ResetKeyResponse",
      "sluice.v1.Reason",
      "sluice.v1.State",
      "sluice.v1.CalendarUnit",
      "sluice.v1.Dimension",
      "sluice.v1.RateLimiter",
      "sluice.v1.RateLimiter.Check",
      "sluice.v1.RateLimiter.CheckBatch",
      "sluice.v1.RateLimiter.CheckStream",
      "sluice.v1.RateLimiter.Charge",
      "sluice.v1.RateLimiter.GiveBack",
      "sluice.v1.RateLimiter.Lease",
      "sluice.v1.RateLimiter.CheckRateLimit",
      "sluice.v1.RateLimiter.GetRemainingQuota",
      "sluice.v1.RateLimiter.ResetLimit",
      "sluice.v1.RateLimiter.CheckAndIncrement",
      "sluice.v1.RateLimiter.GetUsage",
      "sluice.v1.RateLimiter.ResetKey"
    ],
    "base64": "ChxzbHVpY2UvdjEvcmF0ZV9saW1pdGVyLnByb3RvEglzbHVpY2UudjEi5gIKDENoZWNrUmVxdWVzdBIWCgZkb21haW4YASABKAlSBmRvbWFpbhJHCgpkaW1lbnNpb25zGAIgAygLMicuc2x1aWNlLnYxLkNoZWNrUmVxdWVzdC5EaW1lbnNpb25zRW50cnlSCmRpbWVuc2lvbnMSFwoEY29zdBgDIAEoBUgAUgRjb3N0iAEBEg4KAmlkGAQgASgJUgJpZBIaCglpZF90dGxfbXMYBSABKA1SB2lkVHRsTXMSGAoHcHJldmlldxgGIAEoCFIHcHJldmlldxIaCghwb2xpY2llcxgHIAMoCVIIcG9saWNpZXMSGAoHZGV0YWlscxgIIAEoCFIHZGV0YWlscxIYCgdyZWNlaXB0GAkgASgIUgdyZWNlaXB0Gj0KD0RpbWVuc2lvbnNFbnRyeRIQCgNrZXkYASABKAlSA2tleRIUCgV2YWx1ZRgCIAEoCVIFdmFsdWU6AjgBQgcKBV9jb3N0IvIGCghEZWNpc2lvbhIYCgdhbGxvd2VkGAEgASgIUgdhbGxvd2VkEikKBnJlYXNvbhgCIAEoDjIRLnNsdWljZS52MS5SZWFzb25SBnJlYXNvbhISCgRjb3N0GAMgASgFUgRjb3N0EhsKBnBvbGljeRgEIAEoCUgAUgZwb2xpY3mIAQESHQoHdmVyc2lvbhgFIAEoBEgBUgd2ZXJzaW9uiAEBEhkKBXNjb3BlGAYgASgJSAJSBXNjb3BliAEBEhkKBWxpbWl0GAcgASgBSANSBWxpbWl0iAEBEiEKCXJlbWFpbmluZxgIIAEoAUgEUglyZW1haW5pbmeIAQESFwoEdXNlZBgJIAEoAUgFUgR1c2VkiAEBEikKDnJldHJ5X2FmdGVyX21zGAogASgDSAZSDHJldHJ5QWZ0ZXJNc4gBARIpCg5yZXNldF9hZnRlcl9tcxgLIAEoA0gHUgxyZXNldEFmdGVyTXOIAQESIwoLcmVzZXRfYXRfbXMYDCABKANICFIJcmVzZXRBdE1ziAEBEikKBndpbmRvdxgNIAEoCzIRLnNsdWljZS52MS5XaW5kb3dSBndpbmRvdxIrCgVxdWV1ZRgOIAEoCzIVLnNsdWljZS52MS5RdWV1ZVBsYWNlUgVxdWV1ZRImCgVzdGF0ZRgPIAEoDjIQLnNsdWljZS52MS5TdGF0ZVIFc3RhdGUSHQoKZGVueV9jb3VudBgQIAEoBFIJZGVueUNvdW50EhoKCHJlcGxheWVkGBEgASgIUghyZXBsYXllZBIYCgdwcmV2aWV3GBIgASgIUgdwcmV2aWV3EhoKCGRlZ3JhZGVkGBMgASgJUghkZWdyYWRlZBIvCgZzaGFkb3cYFCADKAsyFy5zbHVpY2UudjEuU2hhZG93RGVuaWFsUgZzaGFkb3cSMAoGbGltaXRzGBUgAygLMhguc2x1aWNlLnYxLkxpbWl0RGVjaXNpb25SBmxpbWl0cxIYCgdyZWNlaXB0GBYgASgJUgdyZWNlaXB0QgkKB19wb2xpY3lCCgoIX3ZlcnNpb25CCAoGX3Njb3BlQggKBl9saW1pdEIMCgpfcmVtYWluaW5nQgcKBV91c2VkQhEKD19yZXRyeV9hZnRlcl9tc0IRCg9fcmVzZXRfYWZ0ZXJfbXNCDgoMX3Jlc2V0X2F0X21zItQBCgZXaW5kb3cSFAoFbGltaXQYASABKAFSBWxpbWl0EhcKBnBlcl9tcxgCIAEoAUgAUgVwZXJNcxI1CghjYWxlbmRhchgDIAEoDjIXLnNsdWljZS52MS5DYWxlbmRhclVuaXRIAFIIY2FsZW5kYXISFgoFbmV2ZXIYBCABKAhIAFIFbmV2ZXISGwoJdGltZV96b25lGAUgASgJUgh0aW1lWm9uZRIUCgVidXJzdBgGIAEoAVIFYnVyc3QSEgoEbmFtZRgHIAEoCVIEbmFtZUIFCgNwZXIiQwoKUXVldWVQbGFjZRIaCghwb3NpdGlvbhgBIAEoAVIIcG9zaXRpb24SGQoIZGVsYXlfbXMYAiABKAFSB2RlbGF5TXMizgEKDFNoYWRvd0RlbmlhbBIWCgZwb2xpY3kYASABKAlSBnBvbGljeRIYCgd2ZXJzaW9uGAIgASgEUgd2ZXJzaW9uEhkKBXNjb3BlGAMgASgJSABSBXNjb3BliAEBEikKBnJlYXNvbhgEIAEoDjIRLnNsdWljZS52MS5SZWFzb25SBnJlYXNvbhIpCg5yZXRyeV9hZnRlcl9tcxgFIAEoA0gBUgxyZXRyeUFmdGVyTXOIAQFCCAoGX3Njb3BlQhEKD19yZXRyeV9hZnRlcl9tcyKcBAoNTGltaXREZWNpc2lvbhIWCgZwb2xpY3kYASABKAlSBnBvbGljeRIYCgd2ZXJzaW9uGAIgASgEUgd2ZXJzaW9uEhQKBXNjb3BlGAMgASgJUgVzY29wZRIYCgdzdWJqZWN0GAQgASgJUgdzdWJqZWN0EhwKCWFsZ29yaXRobRgFIAEoCVIJYWxnb3JpdGhtEhgKB2FsbG93ZWQYBiABKAhSB2FsbG93ZWQSKQoGcmVhc29uGAcgASgOMhEuc2x1aWNlLnYxLlJlYXNvblIGcmVhc29uEikKBndpbmRvdxgIIAEoCzIRLnNsdWljZS52MS5XaW5kb3dSBndpbmRvdxISCgRjb3N0GAkgASgFUgRjb3N0EhQKBWxpbWl0GAogASgBUgVsaW1pdBIcCglyZW1haW5pbmcYCyABKAFSCXJlbWFpbmluZxISCgR1c2VkGAwgASgBUgR1c2VkEikKDnJldHJ5X2FmdGVyX21zGA0gASgDSABSDHJldHJ5QWZ0ZXJNc4gBARIpCg5yZXNldF9hZnRlcl9tcxgOIAEoA0gBUgxyZXNldEFmdGVyTXOIAQESKwoFcXVldWUYDyABKAsyFS5zbHVpY2UudjEuUXVldWVQbGFjZVIFcXVldWUSFgoGc2hhZG93GBAgASgIUgZzaGFkb3dCEQoPX3JldHJ5X2FmdGVyX21zQhEKD19yZXNldF9hZnRlcl9tcyKBAQoRQ2hlY2tCYXRjaFJlcXVlc3QSGgoIc2VxdWVuY2UYASABKA1SCHNlcXVlbmNlEi8KBmNoZWNrcxgCIAMoCzIXLnNsdWljZS52MS5DaGVja1JlcXVlc3RSBmNoZWNrcxIfCgtkZWFkbGluZV9tcxgDIAEoDVIKZGVhZGxpbmVNcyJiChJDaGVja0JhdGNoUmVzcG9uc2USGgoIc2VxdWVuY2UYASABKA1SCHNlcXVlbmNlEjAKB3Jlc3VsdHMYAiADKAsyFi5zbHVpY2UudjEuQ2hlY2tSZXN1bHRSB3Jlc3VsdHMieQoLQ2hlY2tSZXN1bHQSMQoIZGVjaXNpb24YASABKAsyEy5zbHVpY2UudjEuRGVjaXNpb25IAFIIZGVjaXNpb24SLQoFZXJyb3IYAiABKAsyFS5zbHVpY2UudjEuQ2hlY2tFcnJvckgAUgVlcnJvckIICgZyZXN1bHQiawoKQ2hlY2tFcnJvchISCgRjb2RlGAEgASgJUgRjb2RlEhgKB21lc3NhZ2UYAiABKAlSB21lc3NhZ2USLwoGZmllbGRzGAMgAygLMhcuc2x1aWNlLnYxLkZpZWxkUHJvYmxlbVIGZmllbGRzIj4KDEZpZWxkUHJvYmxlbRIUCgVmaWVsZBgBIAEoCVIFZmllbGQSGAoHbWVzc2FnZRgCIAEoCVIHbWVzc2FnZSLuAQoNQ2hhcmdlUmVxdWVzdBIWCgZkb21haW4YASABKAlSBmRvbWFpbhJICgpkaW1lbnNpb25zGAIgAygLMiguc2x1aWNlLnYxLkNoYXJnZVJlcXVlc3QuRGltZW5zaW9uc0VudHJ5UgpkaW1lbnNpb25zEhcKBGNvc3QYAyABKAVIAFIEY29zdIgBARIaCghwb2xpY2llcxgEIAMoCVIIcG9saWNpZXMaPQoPRGltZW5zaW9uc0VudHJ5EhAKA2tleRgBIAEoCVIDa2V5EhQKBXZhbHVlGAIgASgJUgV2YWx1ZToCOAFCBwoFX2Nvc3QiEAoOQ2hhcmdlUmVzcG9uc2UiKwoPR2l2ZUJhY2tSZXF1ZXN0EhgKB3JlY2VpcHQYASABKAlSB3JlY2VpcHQiKAoQR2l2ZUJhY2tSZXNwb25zZRIUCgVnaXZlbhgBIAEoCFIFZ2l2ZW4inQEKDExlYXNlUmVxdWVzdBItCgVjaGVjaxgBIAEoCzIXLnNsdWljZS52MS5DaGVja1JlcXVlc3RSBWNoZWNrEhIKBHdhbnQYAiABKA1SBHdhbnQSFwoHaG9sZF9tcxgDIAEoDVIGaG9sZE1zEjEKB3NldHRsZWQYBCABKAsyFy5zbHVpY2UudjEuU2V0dGxlZEdyYW50UgdzZXR0bGVkImoKDFNldHRsZWRHcmFudBIUCgVlcG9jaBgBIAEoBFIFZXBvY2gSFAoFc3BlbnQYAiABKA1SBXNwZW50EhIKBGtlcHQYAyABKA1SBGtlcHQSGgoIcmV0dXJuZWQYBCABKA1SCHJldHVybmVkIvIBCg1MZWFzZVJlc3BvbnNlEhgKB2dyYW50ZWQYASABKA1SB2dyYW50ZWQSFAoFZXBvY2gYAiABKARSBWVwb2NoEhgKB3Vuc3BlbnQYAyABKARSB3Vuc3BlbnQSGQoIbGVhc2VfbXMYBCABKA1SB2xlYXNlTXMSGQoIc3RhbGVfbXMYBSABKA1SB3N0YWxlTXMSEgoEY29zdBgGIAEoDVIEY29zdBIvCghkZWNpc2lvbhgHIAEoCzITLnNsdWljZS52MS5EZWNpc2lvblIIZGVjaXNpb24SHAoJZm9yZ290dGVuGAggASgNUglmb3Jnb3R0ZW4iuQEKFUNoZWNrUmF0ZUxpbWl0UmVxdWVzdBIeCgppZGVudGlmaWVyGAEgASgJUgppZGVudGlmaWVyEjIKCWRpbWVuc2lvbhgCIAEoDjIULnNsdWljZS52MS5EaW1lbnNpb25SCWRpbWVuc2lvbhIaCghlbmRwb2ludBgDIAEoCVIIZW5kcG9pbnQSEgoEY29zdBgEIAEoBVIEY29zdBIcCgl0aW1lc3RhbXAYBSABKANSCXRpbWVzdGFtcCLHAQoWQ2hlY2tSYXRlTGltaXRSZXNwb25zZRIYCgdhbGxvd2VkGAEgASgIUgdhbGxvd2VkEiMKDWN1cnJlbnRfY291bnQYAiABKANSDGN1cnJlbnRDb3VudBIUCgVsaW1pdBgDIAEoA1IFbGltaXQSHAoJcmVtYWluaW5nGAQgASgDUglyZW1haW5pbmcSGQoIcmVzZXRfYXQYBSABKANSB3Jlc2V0QXQSHwoLcmV0cnlfYWZ0ZXIYBiABKAVSCnJldHJ5QWZ0ZXIiigEKGEdldFJlbWFpbmluZ1F1b3RhUmVxdWVzdBIeCgppZGVudGlmaWVyGAEgASgJUgppZGVudGlmaWVyEjIKCWRpbWVuc2lvbhgCIAEoDjIULnNsdWljZS52MS5EaW1lbnNpb25SCWRpbWVuc2lvbhIaCghlbmRwb2ludBgDIAEoCVIIZW5kcG9pbnQijwEKGUdldFJlbWFpbmluZ1F1b3RhUmVzcG9uc2USIwoNY3VycmVudF9jb3VudBgBIAEoA1IMY3VycmVudENvdW50EhQKBWxpbWl0GAIgASgDUgVsaW1pdBIcCglyZW1haW5pbmcYAyABKANSCXJlbWFpbmluZxIZCghyZXNldF9hdBgEIAEoA1IHcmVzZXRBdCKDAQoRUmVzZXRMaW1pdFJlcXVlc3QSHgoKaWRlbnRpZmllchgBIAEoCVIKaWRlbnRpZmllchIyCglkaW1lbnNpb24YAiABKA4yFC5zbHVpY2UudjEuRGltZW5zaW9uUglkaW1lbnNpb24SGgoIZW5kcG9pbnQYAyABKAlSCGVuZHBvaW50IhQKElJlc2V0TGltaXRSZXNwb25zZSKWAgoYQ2hlY2tBbmRJbmNyZW1lbnRSZXF1ZXN0EhsKCXBvbGljeV9pZBgBIAEoCVIIcG9saWN5SWQSUwoKZGltZW5zaW9ucxgCIAMoCzIzLnNsdWljZS52MS5DaGVja0FuZEluY3JlbWVudFJlcXVlc3QuRGltZW5zaW9uc0VudHJ5UgpkaW1lbnNpb25zEhIKBGNvc3QYAyABKAVSBGNvc3QSHQoKcmVxdWVzdF9pZBgEIAEoCVIJcmVxdWVzdElkEhYKBmRvbWFpbhgFIAEoCVIGZG9tYWluGj0KD0RpbWVuc2lvbnNFbnRyeRIQCgNrZXkYASABKAlSA2tleRIUCgV2YWx1ZRgCIAEoCVIFdmFsdWU6AjgBIvsBChlDaGVja0FuZEluY3JlbWVudFJlc3BvbnNlEhgKB2FsbG93ZWQYASABKAhSB2FsbG93ZWQSHAoJcmVtYWluaW5nGAIgASgFUglyZW1haW5pbmcSIgoNcmVzZXRfdW5peF9tcxgDIAEoA1ILcmVzZXRVbml4TXMSJAoOcmV0cnlfYWZ0ZXJfbXMYBCABKAVSDHJldHJ5QWZ0ZXJNcxIlCg5wb2xpY3lfdmVyc2lvbhgFIAEoCVINcG9saWN5VmVyc2lvbhI1Cg1tYXRjaGVkX3F1b3RhGAYgASgLMhAuc2x1aWNlLnYxLlF1b3RhUgxtYXRjaGVkUXVvdGEivgEKBVF1b3RhEhsKCXBvbGljeV9pZBgBIAEoCVIIcG9saWN5SWQSFAoFc2NvcGUYAiABKAlSBXNjb3BlEhYKBndpbmRvdxgDIAEoCVIGd2luZG93EhQKBWxpbWl0GAQgASgDUgVsaW1pdBISCgR1c2VkGAUgASgDUgR1c2VkEhwKCXJlbWFpbmluZxgGIAEoA1IJcmVtYWluaW5nEiIKDXJlc2V0X3VuaXhfbXMYByABKANSC3Jlc2V0VW5peE1zItEBCg9HZXRVc2FnZVJlcXVlc3QSGwoJcG9saWN5X2lkGAEgASgJUghwb2xpY3lJZBJKCgpkaW1lbnNpb25zGAIgAygLMiouc2x1aWNlLnYxLkdldFVzYWdlUmVxdWVzdC5EaW1lbnNpb25zRW50cnlSCmRpbWVuc2lvbnMSFgoGZG9tYWluGAMgASgJUgZkb21haW4aPQoPRGltZW5zaW9uc0VudHJ5EhAKA2tleRgBIAEoCVIDa2V5EhQKBXZhbHVlGAIgASgJUgV2YWx1ZToCOAEiPAoQR2V0VXNhZ2VSZXNwb25zZRIoCgZxdW90YXMYASADKAsyEC5zbHVpY2UudjEuUXVvdGFSBnF1b3RhcyLRAQoPUmVzZXRLZXlSZXF1ZXN0EhsKCXBvbGljeV9pZBgBIAEoCVIIcG9saWN5SWQSSgoKZGltZW5zaW9ucxgCIAMoCzIqLnNsdWljZS52MS5SZXNldEtleVJlcXVlc3QuRGltZW5zaW9uc0VudHJ5UgpkaW1lbnNpb25zEhYKBmRvbWFpbhgDIAEoCVIGZG9tYWluGj0KD0RpbWVuc2lvbnNFbnRyeRIQCgNrZXkYASABKAlSA2tleRIUCgV2YWx1ZRgCIAEoCVIFdmFsdWU6AjgBIhIKEFJlc2V0S2V5UmVzcG9uc2Uq2wEKBlJlYXNvbhIWChJSRUFTT05fVU5TUEVDSUZJRUQQABIYChRSRUFTT05fV0lUSElOX0xJTUlUUxABEhUKEVJFQVNPTl9PVkVSX0xJTUlUEAISFQoRUkVBU09OX05FVkVSX0ZJVFMQAxISCg5SRUFTT05fQkxPQ0tFRBAEEhQKEFJFQVNPTl9ERU5ZX0xJU1QQBRIcChhSRUFTT05fTUlTU0lOR19ESU1FTlNJT04QBhIUChBSRUFTT05fVU5MSU1JVEVEEAcSEwoPUkVBU09OX0RFR1JBREVEEAgqWAoFU3RhdGUSFQoRU1RBVEVfVU5TUEVDSUZJRUQQABIQCgxTVEFURV9OT1JNQUwQARIRCg1TVEFURV9XQVJOSU5HEAISEwoPU1RBVEVfVEhST1RUTEVEEAMqXQoMQ2FsZW5kYXJVbml0Eh0KGUNBTEVOREFSX1VOSVRfVU5TUEVDSUZJRUQQABIVChFDQUxFTkRBUl9VTklUX0RBWRABEhcKE0NBTEVOREFSX1VOSVRfTU9OVEgQAipjCglEaW1lbnNpb24SGQoVRElNRU5TSU9OX1VOU1BFQ0lGSUVEEAASEgoORElNRU5TSU9OX1VTRVIQARIQCgxESU1FTlNJT05fSVAQAhIVChFESU1FTlNJT05fQVBJX0tFWRADMosHCgtSYXRlTGltaXRlchI1CgVDaGVjaxIXLnNsdWljZS52MS5DaGVja1JlcXVlc3QaEy5zbHVpY2UudjEuRGVjaXNpb24SSQoKQ2hlY2tCYXRjaBIcLnNsdWljZS52MS5DaGVja0JhdGNoUmVxdWVzdBodLnNsdWljZS52MS5DaGVja0JhdGNoUmVzcG9uc2USTgoLQ2hlY2tTdHJlYW0SHC5zbHVpY2UudjEuQ2hlY2tCYXRjaFJlcXVlc3QaHS5zbHVpY2UudjEuQ2hlY2tCYXRjaFJlc3BvbnNlKAEwARI9CgZDaGFyZ2USGC5zbHVpY2UudjEuQ2hhcmdlUmVxdWVzdBoZLnNsdWljZS52MS5DaGFyZ2VSZXNwb25zZRJDCghHaXZlQmFjaxIaLnNsdWljZS52MS5HaXZlQmFja1JlcXVlc3QaGy5zbHVpY2UudjEuR2l2ZUJhY2tSZXNwb25zZRI6CgVMZWFzZRIXLnNsdWljZS52MS5MZWFzZVJlcXVlc3QaGC5zbHVpY2UudjEuTGVhc2VSZXNwb25zZRJVCg5DaGVja1JhdGVMaW1pdBIgLnNsdWljZS52MS5DaGVja1JhdGVMaW1pdFJlcXVlc3QaIS5zbHVpY2UudjEuQ2hlY2tSYXRlTGltaXRSZXNwb25zZRJeChFHZXRSZW1haW5pbmdRdW90YRIjLnNsdWljZS52MS5HZXRSZW1haW5pbmdRdW90YVJlcXVlc3QaJC5zbHVpY2UudjEuR2V0UmVtYWluaW5nUXVvdGFSZXNwb25zZRJJCgpSZXNldExpbWl0Ehwuc2x1aWNlLnYxLlJlc2V0TGltaXRSZXF1ZXN0Gh0uc2x1aWNlLnYxLlJlc2V0TGltaXRSZXNwb25zZRJeChFDaGVja0FuZEluY3JlbWVudBIjLnNsdWljZS52MS5DaGVja0FuZEluY3JlbWVudFJlcXVlc3QaJC5zbHVpY2UudjEuQ2hlY2tBbmRJbmNyZW1lbnRSZXNwb25zZRJDCghHZXRVc2FnZRIaLnNsdWljZS52MS5HZXRVc2FnZVJlcXVlc3QaGy5zbHVpY2UudjEuR2V0VXNhZ2VSZXNwb25zZRJDCghSZXNldEtleRIaLnNsdWljZS52MS5SZXNldEtleVJlcXVlc3QaGy5zbHVpY2UudjEuUmVzZXRLZXlSZXNwb25zZWIGcHJvdG8z0vYDBAgAGAA="
  },
  {
    "name": "sluice/v1/policy_admin.proto",
    "imports": [
      "google/protobuf/timestamp.proto",
      "sluice/v1/rate_limiter.proto"
    ],
    "services": [
      "sluice.v1.PolicyAdmin"
    ],
    "symbols": [
      "sluice.v1.Policy",
      "sluice.v1.Policy.CostMapEntry",
      "sluice.v1.PolicyWindow",
      "sluice.v1.PolicyAck",
      "sluice.v1.ListPoliciesRequest",
      "sluice.v1.RuleType",
      "sluice.v1.FailPolicy",
      "sluice.v1.PolicyAdmin",
      "sluice.v1.PolicyAdmin.ConfigurePolicy",
      "sluice.v1.PolicyAdmin.ListPolicies"
    ],
    "base64": "ChxzbHVpY2UvdjEvcG9saWN5X2FkbWluLnByb3RvEglzbHVpY2UudjEaH2dvb2dsZS9wcm90b2J1Zi90aW1lc3RhbXAucHJvdG8aHHNsdWljZS92MS9yYXRlX2xpbWl0ZXIucHJvdG8izwUKBlBvbGljeRIbCglwb2xpY3lfaWQYASABKAlSCHBvbGljeUlkEhgKB3ZlcnNpb24YAiABKANSB3ZlcnNpb24SMAoJcnVsZV90eXBlGAMgASgOMhMuc2x1aWNlLnYxLlJ1bGVUeXBlUghydWxlVHlwZRIxCgd3aW5kb3dzGAQgAygLMhcuc2x1aWNlLnYxLlBvbGljeVdpbmRvd1IHd2luZG93cxIeCgpkaW1lbnNpb25zGAUgAygJUgpkaW1lbnNpb25zEjYKC2ZhaWxfcG9saWN5GAYgASgOMhUuc2x1aWNlLnYxLkZhaWxQb2xpY3lSCmZhaWxQb2xpY3kSOQoIY29zdF9tYXAYByADKAsyHi5zbHVpY2UudjEuUG9saWN5LkNvc3RNYXBFbnRyeVIHY29zdE1hcBIdCgpvd25lcl90ZWFtGAggASgJUglvd25lclRlYW0SOQoKY3JlYXRlZF9hdBgJIAEoCzIaLmdvb2dsZS5wcm90b2J1Zi5UaW1lc3RhbXBSCWNyZWF0ZWRBdBI5Cgp2YWxpZF9mcm9tGAogASgLMhouZ29vZ2xlLnByb3RvYnVmLlRpbWVzdGFtcFIJdmFsaWRGcm9tEiQKC3JvbGxvdXRfcGN0GAsgASgBSABSCnJvbGxvdXRQY3SIAQESIwoNZG9jdW1lbnRfanNvbhgMIAEoCVIMZG9jdW1lbnRKc29uEhcKB2RyeV9ydW4YDSABKAhSBmRyeVJ1bhIQCgN3aHkYDiABKAlSA3doeRIWCgZkb21haW4YDyABKAlSBmRvbWFpbhInCg9maWVsZHNfY29tcGxldGUYECABKAhSDmZpZWxkc0NvbXBsZXRlGjoKDENvc3RNYXBFbnRyeRIQCgNrZXkYASABKAlSA2tleRIUCgV2YWx1ZRgCIAEoBVIFdmFsdWU6AjgBQg4KDF9yb2xsb3V0X3BjdCJiCgxQb2xpY3lXaW5kb3cSFwoHc3Bhbl9tcxgBIAEoA1IGc3Bhbk1zEhQKBWxpbWl0GAIgASgBUgVsaW1pdBIZCgVidXJzdBgDIAEoAUgAUgVidXJzdIgBAUIICgZfYnVyc3QizwEKCVBvbGljeUFjaxIbCglwb2xpY3lfaWQYASABKAlSCHBvbGljeUlkEhgKB3ZlcnNpb24YAiABKANSB3ZlcnNpb24SHgoKZ2VuZXJhdGlvbhgDIAEoA1IKZ2VuZXJhdGlvbhIXCgdkcnlfcnVuGAQgASgIUgZkcnlSdW4SHQoKcm9sbG91dF9pZBgFIAEoCVIJcm9sbG91dElkEjMKCHdhcm5pbmdzGAYgAygLMhcuc2x1aWNlLnYxLkZpZWxkUHJvYmxlbVIId2FybmluZ3MiNAoTTGlzdFBvbGljaWVzUmVxdWVzdBIdCgpvd25lcl90ZWFtGAEgASgJUglvd25lclRlYW0qzgEKCFJ1bGVUeXBlEhkKFVJVTEVfVFlQRV9VTlNQRUNJRklFRBAAEhIKDlJVTEVfVFlQRV9HQ1JBEAESJAogUlVMRV9UWVBFX1NMSURJTkdfV0lORE9XX0NPVU5URVIQAhIaChZSVUxFX1RZUEVfRklYRURfV0lORE9XEAMSGgoWUlVMRV9UWVBFX1RPS0VOX0JVQ0tFVBAEEhoKFlJVTEVfVFlQRV9MRUFLWV9CVUNLRVQQBRIZChVSVUxFX1RZUEVfU0xJRElOR19MT0cQBipuCgpGYWlsUG9saWN5EhsKF0ZBSUxfUE9MSUNZX1VOU1BFQ0lGSUVEEAASFAoQRkFJTF9QT0xJQ1lfT1BFThABEhYKEkZBSUxfUE9MSUNZX0NMT1NFRBACEhUKEUZBSUxfUE9MSUNZX0xPQ0FMEAMyjgEKC1BvbGljeUFkbWluEjoKD0NvbmZpZ3VyZVBvbGljeRIRLnNsdWljZS52MS5Qb2xpY3kaFC5zbHVpY2UudjEuUG9saWN5QWNrEkMKDExpc3RQb2xpY2llcxIeLnNsdWljZS52MS5MaXN0UG9saWNpZXNSZXF1ZXN0GhEuc2x1aWNlLnYxLlBvbGljeTABYgZwcm90bzPS9gMECAAYAA=="
  }
];
