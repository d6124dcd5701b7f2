import { demand, unasked } from "../../access/access.ts";
import { findBearerToken } from "../../access/bearer-token.ts";
import type { Transport } from "../transport.ts";
import type { HttpContext } from "./exchange.ts";
import { decidingApi } from "./render-open-api.ts";
import type { Route } from "./route.ts";
import { type Admit, createRouteServer, type Patience } from "./route-server.ts";
import { nativeRoutes, withDescription } from "./routes.ts";

type HttpRoute = Route<HttpContext, string>;

export interface HttpServerOptions extends Patience {
  /** Absent: only the native API. */
  readonly routes?: readonly HttpRoute[] | undefined;
}

const nativeApi = withDescription(nativeRoutes, decidingApi);

/** HTTP/1.1 over the route table. */
export function createHttpServer(context: HttpContext, options: HttpServerOptions = {}): Promise<Transport> {
  const { routes = nativeApi, ...patience } = options;
  const admit: Admit<HttpRoute> = ({ headers }, { needs }) => {
    if (needs === "nothing") return { caller: unasked };
    const caller = context.access.identify(findBearerToken(headers));
    demand(caller, needs);
    return { caller };
  };
  return createRouteServer({ protocol: "http", routes, context, admit, ...patience });
}
