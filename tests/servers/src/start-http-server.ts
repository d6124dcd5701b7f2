import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** What a request was, as the server saw it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly body: string;
  readonly port: number | undefined;
}

export interface TestHttpServer {
  readonly url: string;
  readonly seen: readonly SeenRequest[];
  /** Breaks the connection that came from this port. */
  cut(port: number): void;
  close(): Promise<void>;
}

export type HttpAnswer = (request: IncomingMessage, response: ServerResponse, number: number) => void;

/** An HTTP server on loopback. `answer` is called with the number of each request, starting at 1. */
export async function startHttpServer(answer: HttpAnswer): Promise<TestHttpServer> {
  const seen: SeenRequest[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => undefined);
    request.on("end", () => {
      const { method = "", url = "", socket } = request;
      seen.push({ method, url, body: Buffer.concat(chunks).toString(), port: socket.remotePort });
      answer(request, response, seen.length);
    });
  });
  const sockets = new Map<number | undefined, Socket>();
  server.on("connection", (socket) => sockets.set(socket.remotePort, socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    cut: (from) => void sockets.get(from)?.destroy(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
