import { grpcMethods, httpRoutes } from "../boot/api-tables.ts";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { createGrpcServer, type GrpcEngine, type GrpcServerOptions } from "../data-plane/transports/grpc/server.ts";
import type { HttpContext } from "../data-plane/transports/http/exchange.ts";
import { createHttpServer, type HttpServerOptions } from "../data-plane/transports/http/server.ts";
import type { Transport } from "../data-plane/transports/transport.ts";

/** An HTTP server with all of the daemon's routes. */
export function wholeHttpServer(context: HttpContext, options: HttpServerOptions = {}): Promise<Transport> {
  return createHttpServer(context, { routes: httpRoutes, ...options });
}

let grpcEngine: GrpcEngine = "sluice";

/** Chooses the engine of the gRPC servers that are created after this. */
export function useGrpcEngine(engine: GrpcEngine): void {
  grpcEngine = engine;
}

/** Which one that is, for what differs between them. */
export function usedGrpcEngine(): GrpcEngine {
  return grpcEngine;
}

/** A gRPC server with all of the daemon's methods. */
export function wholeGrpcServer(
  service: Parameters<typeof createGrpcServer>[0],
  options: GrpcServerOptions = {},
  control?: ControlPlane,
): Transport {
  return createGrpcServer(service, { methods: grpcMethods(control), engine: grpcEngine, ...options });
}
