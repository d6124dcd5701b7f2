import { limitOwnApi, type OwnLimits } from "../../data-plane/access/limit-own-api.ts";
import { createRouteServer, type Patience } from "../../data-plane/transports/http/route-server.ts";
import type { Transport } from "../../data-plane/transports/transport.ts";
import { createAdmit } from "./admit.ts";
import { renderDeprecation } from "./deprecation.ts";
import type { AdminContext, AdminRoute } from "./route.ts";
import { nativeAdminRoutes, withServerRoutes } from "./routes.ts";
import { nativeAdminApi } from "./schemas.ts";

export interface AdminServerOptions extends Patience {
  /** Absent: the native API alone. */
  readonly routes?: readonly AdminRoute[] | undefined;
  /** Shared with the other APIs of the control plane. Absent: a separate one. */
  readonly ownLimits?: OwnLimits | undefined;
}

const nativeApi = withServerRoutes(nativeAdminRoutes, nativeAdminApi);

/** Headers for browsers on every answer: it is data, not to be framed, and its type is not to be guessed. */
const always: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
};

/** The control plane over HTTP/1.1, served from its table of routes. */
export function createAdminServer(context: AdminContext, options: AdminServerOptions = {}): Promise<Transport> {
  const { routes = nativeApi, ownLimits = limitOwnApi(), ...patience } = options;
  const admit = createAdmit(context, ownLimits);
  return createRouteServer({ protocol: "admin", routes, context, admit, headersFor, ...patience });
}

function headersFor(route: AdminRoute | undefined): Readonly<Record<string, string>> {
  return route?.deprecated === undefined ? always : { ...always, ...renderDeprecation(route.deprecated) };
}
