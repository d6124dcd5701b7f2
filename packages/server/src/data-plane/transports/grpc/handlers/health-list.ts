import type { HealthListRequest, HealthListResponse } from "@sluice/protocol/health";
import { findHealth, healthNames } from "../health.ts";
import type { GrpcContext } from "../method.ts";

export function healthList(_request: HealthListRequest, context: GrpcContext): HealthListResponse {
  return {
    statuses: Object.fromEntries(healthNames.map((name) => [name, { status: findHealth(name, context)! }])),
  };
}
