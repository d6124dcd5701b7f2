import type { ServerOptions } from "node:http2";
import { Server } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { openHttp2Server } from "./http2-server.ts";

/** Fails if an update of grpc-js breaks what `openHttp2Server` relies on. `attacks.test.ts` shows what the options do. */
describe("the HTTP/2 server inside grpc-js", () => {
  it("is made with our options, and has our listener in place of its own", () => {
    const server = new Server();
    const onStream = (): void => {};
    const options: ServerOptions = { streamResetBurst: 7, streamResetRate: 3, settings: { maxConcurrentStreams: 5 } };
    const { http2, serve } = openHttp2Server(server, options, onStream);
    expect(http2.listeners("stream")).toEqual([onStream]);
    expect(serve).toBeTypeOf("function");
    const [symbol] = Object.getOwnPropertySymbols(http2).filter(({ description }) => description === "options");
    expect((http2 as unknown as Record<symbol, ServerOptions>)[symbol!]).toMatchObject(options);
    server.forceShutdown();
  });

  it("is refused at startup if a part is missing, with what to do", () => {
    for (const parts of [
      {},
      { commonServerOptions: {}, createConnectionInjector() {} },
      {
        commonServerOptions: {},
        http2Servers: new Map([[{ listeners: () => [] }, {}]]),
        createConnectionInjector() {},
      },
    ])
      expect(() => openHttp2Server(parts as unknown as Server, {}, () => {})).toThrow(/install the version/);
  });
});
