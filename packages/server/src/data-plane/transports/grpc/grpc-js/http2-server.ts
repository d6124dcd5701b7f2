import type { Http2Server, IncomingHttpHeaders, ServerHttp2Stream, ServerOptions } from "node:http2";
import type { Socket } from "node:net";
import { type Server, ServerCredentials } from "@grpc/grpc-js";

export type StreamListener = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** The HTTP/2 server inside a gRPC server. */
export interface InnerServer {
  readonly http2: Http2Server;
  /** What grpc-js does with a stream. It is called by `onStream`, or not at all. */
  readonly serve: StreamListener;
  /** Hands over a connection. */
  inject(socket: Socket): void;
}

/** The parts of grpc-js that it does not export. */
interface Internals {
  readonly commonServerOptions?: ServerOptions;
  readonly http2Servers?: ReadonlyMap<Http2Server, unknown>;
}

/**
 * Creates the HTTP/2 server that grpc-js uses, with options of Node that grpc-js does not pass on, and with our listener
 * for streams in front of its own: grpc-js reads a message before the caller is known.
 *
 * This is the only file that reaches into grpc-js (1.14). It relies on three things: options are taken from
 * `commonServerOptions`, the server is the only entry of `http2Servers`, and it has exactly one listener for streams. If an
 * update changes one of them, this throws at startup.
 */
export function openHttp2Server(server: Server, options: ServerOptions, onStream: StreamListener): InnerServer {
  const { commonServerOptions, http2Servers } = server as unknown as Internals;
  if (commonServerOptions === undefined) throw unknownVersion("commonServerOptions");
  Object.assign(commonServerOptions, options);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const [http2, ...others] = http2Servers?.keys() ?? [];
  if (http2 === undefined || others.length > 0) throw unknownVersion("http2Servers");
  const [serve, ...more] = http2.listeners("stream") as StreamListener[];
  if (serve === undefined || more.length > 0) throw unknownVersion("the listener for streams");
  http2.removeAllListeners("stream");
  http2.on("stream", onStream);
  return { http2, serve, inject: (socket) => injector.injectConnection(socket) };
}

function unknownVersion(part: string): Error {
  return new Error(
    `this version of @grpc/grpc-js does not have ${part} where Sluice expects it, so its bounds cannot be set; ` +
      "install the version that the lock file names",
  );
}
