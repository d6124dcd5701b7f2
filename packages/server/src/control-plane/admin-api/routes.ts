import type { OpenApiOptions } from "../../data-plane/transports/http/render-open-api.ts";
import type { AdminRoute } from "./route.ts";
import { disablingRoutes } from "./tables/disabling-routes.ts";
import { liveRoutes } from "./tables/live-routes.ts";
import { operationRoutes } from "./tables/operation-routes.ts";
import { planRoutes } from "./tables/plan-routes.ts";
import { policyRoutes } from "./tables/policy-routes.ts";
import { rolloutRoutes } from "./tables/rollout-routes.ts";
import { serverRoutes } from "./tables/server-routes.ts";
import { sessionRoutes } from "./tables/session-routes.ts";
import { subjectRoutes } from "./tables/subject-routes.ts";
import { summaryRoutes } from "./tables/summary-routes.ts";
import { usageRoutes } from "./tables/usage-routes.ts";
import { whatIfRoutes } from "./tables/what-if-routes.ts";

/** The native admin API, in the order of its documentation, without the routes that describe it. */
export const nativeAdminRoutes: readonly AdminRoute[] = [
  ...policyRoutes,
  ...disablingRoutes,
  ...planRoutes,
  ...rolloutRoutes,
  ...subjectRoutes,
  ...operationRoutes,
  ...usageRoutes,
  ...summaryRoutes,
  ...sessionRoutes,
  ...liveRoutes,
  ...whatIfRoutes,
];

/** The routes, with those for health and for the OpenAPI description. */
export function withServerRoutes(described: readonly AdminRoute[], api: OpenApiOptions): readonly AdminRoute[] {
  const routes: readonly AdminRoute[] = [...described, ...serverRoutes(() => routes, api)];
  return routes;
}
