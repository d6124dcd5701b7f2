import type { OpenApiOptions } from "../../data-plane/transports/http/render-open-api.ts";
import type { AdminRoute } from "./route.ts";
import { operationRoutes } from "./tables/operation-routes.ts";
import { policyRoutes } from "./tables/policy-routes.ts";
import { rolloutRoutes } from "./tables/rollout-routes.ts";
import { serverRoutes } from "./tables/server-routes.ts";
import { subjectRoutes } from "./tables/subject-routes.ts";
import { usageRoutes } from "./tables/usage-routes.ts";

/** The native admin API, in the order of its documentation, without the routes that describe it. */
export const nativeAdminRoutes: readonly AdminRoute[] = [
  ...policyRoutes,
  ...rolloutRoutes,
  ...subjectRoutes,
  ...operationRoutes,
  ...usageRoutes,
];

/** The routes, with those for health and for the OpenAPI description. */
export function withServerRoutes(described: readonly AdminRoute[], api: OpenApiOptions): readonly AdminRoute[] {
  const routes: readonly AdminRoute[] = [...described, ...serverRoutes(() => routes, api)];
  return routes;
}
