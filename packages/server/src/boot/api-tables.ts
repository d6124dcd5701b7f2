import { facadeRoutes } from "../compat/admin/routes.ts";
import { facadeSchemas } from "../compat/admin/schemas.ts";
import { compatMethods } from "../compat/grpc/methods.ts";
import { compatRoutes } from "../compat/http/routes.ts";
import { compatSchemas } from "../compat/http/schemas.ts";
import type { AdminRoute } from "../control-plane/admin-api/route.ts";
import { nativeAdminRoutes, withServerRoutes } from "../control-plane/admin-api/routes.ts";
import { nativeAdminApi } from "../control-plane/admin-api/schemas.ts";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import type { Method } from "../data-plane/transports/grpc/method.ts";
import { nativeMethods } from "../data-plane/transports/grpc/methods.ts";
import type { HttpContext } from "../data-plane/transports/http/exchange.ts";
import { decidingApi, type OpenApiOptions } from "../data-plane/transports/http/render-open-api.ts";
import type { Route } from "../data-plane/transports/http/route.ts";
import { nativeRoutes, withDescription } from "../data-plane/transports/http/routes.ts";

// What a server answers: the native tables, followed by those of `compat`.

/** How the HTTP port describes itself. */
export const httpApi: OpenApiOptions = { ...decidingApi, schemas: { ...decidingApi.schemas, ...compatSchemas } };

/** Every route of the HTTP port. */
export const httpRoutes: readonly Route<HttpContext, string>[] = withDescription(
  [...nativeRoutes, ...compatRoutes],
  httpApi,
);

/** How the admin port describes itself. */
export const adminApi: OpenApiOptions = {
  ...nativeAdminApi,
  schemas: { ...nativeAdminApi.schemas, ...facadeSchemas },
};

/** Every route of the admin port. */
export const adminRoutes: readonly AdminRoute[] = withServerRoutes([...nativeAdminRoutes, ...facadeRoutes], adminApi);

/** Every gRPC method. */
export function grpcMethods(control?: ControlPlane | undefined): readonly Method[] {
  return [...nativeMethods, ...compatMethods(control)];
}
