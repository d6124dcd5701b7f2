import { demand, unasked } from "../../access/access.ts";
import { bearerTokenOf } from "../../access/bearer-token.ts";
import type { Transport } from "../transport.ts";
import type { HttpContext } from "./exchange.ts";
import type { Route } from "./route.ts";
import { type Admit, createRouteServer, type Patience } from "./route-server.ts";
import { routes } from "./routes.ts";

export type HttpServerOptions = Patience;

/** HTTP/1.1 over the route table. */
export function createHttpServer(context: HttpContext, options: HttpServerOptions = {}): Promise<Transport> {
  const admit: Admit<Route> = ({ headers }, { needs }) => {
    if (needs === "nothing") return { caller: unasked };
    const caller = context.access.identify(bearerTokenOf(headers));
    demand(caller, needs);
    return { caller };
  };
  return createRouteServer({ protocol: "http", routes, context, admit, ...options });
}
