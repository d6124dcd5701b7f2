import { facadeRoutes } from "./facades/routes.ts";
import type { AdminRoute } from "./route.ts";
import { operationRoutes } from "./tables/operation-routes.ts";
import { policyRoutes } from "./tables/policy-routes.ts";
import { rolloutRoutes } from "./tables/rollout-routes.ts";
import { serverRoutes } from "./tables/server-routes.ts";
import { subjectRoutes } from "./tables/subject-routes.ts";

/** Every route of the control plane, in the order of its documentation. */
export const routes: readonly AdminRoute[] = [
  ...policyRoutes,
  ...rolloutRoutes,
  ...subjectRoutes,
  ...operationRoutes,
  ...facadeRoutes,
  ...serverRoutes(() => routes),
];
