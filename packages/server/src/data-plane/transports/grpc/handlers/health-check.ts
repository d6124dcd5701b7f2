import { Metadata, type StatusObject, status } from "@grpc/grpc-js";
import type { HealthCheckRequest, HealthCheckResponse } from "@sluice/protocol/health";
import { findHealth } from "../health.ts";
import type { GrpcContext } from "../method.ts";

export function healthCheck({ service }: HealthCheckRequest, context: GrpcContext): HealthCheckResponse {
  const health = findHealth(service, context);
  if (health !== undefined) return { status: health };
  const metadata = new Metadata();
  throw { code: status.NOT_FOUND, details: "there is no service of this name", metadata } satisfies StatusObject;
}
