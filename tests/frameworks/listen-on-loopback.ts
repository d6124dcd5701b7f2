import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { RunningApp } from "./framework-under-test.ts";

/** A server of Node's on a free port, until it is closed with all of its connections. */
export async function listenOnLoopback(
  server: Pick<Server, "listen" | "address" | "close" | "closeAllConnections">,
): Promise<RunningApp> {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
