import { grpcMethods, httpRoutes } from "../boot/api-tables.ts";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { createGrpcServer, type GrpcServerOptions } from "../data-plane/transports/grpc/server.ts";
import type { HttpContext } from "../data-plane/transports/http/exchange.ts";
import { createHttpServer, type HttpServerOptions } from "../data-plane/transports/http/server.ts";
import type { Transport } from "../data-plane/transports/transport.ts";

/** An HTTP server with every route that the daemon answers. */
export function wholeHttpServer(context: HttpContext, options: HttpServerOptions = {}): Promise<Transport> {
  return createHttpServer(context, { routes: httpRoutes, ...options });
}

/** A gRPC server with every method that the daemon answers. */
export function wholeGrpcServer(
  service: Parameters<typeof createGrpcServer>[0],
  options: GrpcServerOptions = {},
  control?: ControlPlane,
): Transport {
  return createGrpcServer(service, { methods: grpcMethods(control), ...options });
}
