import { createServer, type RequestListener } from "node:http";
import { connect } from "node:net";
import { rateLimit as limitExpress } from "@sluice/middleware/express";
import { rateLimit as limitHttp } from "@sluice/middleware/http";
import express from "express";
import { describe, expect, it } from "vitest";
import { listenOnLoopback } from "./listen-on-loopback.ts";

const policies = {
  policies: {
    policies: [
      { id: "login", match: { endpoint: "/v1/login" }, limits: [{ windows: ["1/h"] }] },
      { id: "orders", match: { endpoint: "/v1/orders/**" }, limits: [{ windows: ["1/h"] }] },
      { id: "public", match: { endpoint: "/public/**" }, unlimited: true, replaces: ["login", "orders"] },
    ],
    default: "none",
  },
};

/** An app that finds its route in an address, as many do. */
function httpApp(): RequestListener {
  const admit = limitHttp(policies);
  return async (request, response) => {
    if (!(await admit(request, response))) return;
    const { pathname } = new URL(request.url ?? "", "http://base");
    response.end(/^\/v1\/(?:login$|orders)/.test(pathname) ? "limited" : "open");
  };
}

function expressApp(): RequestListener {
  const app = express();
  app.use(limitExpress(policies));
  app.all("/v1/login", (_request, response) => void response.end("limited"));
  app.use("/v1/orders", (_request, response) => void response.end("limited"));
  app.use((_request, response) => void response.end("open"));
  return app;
}

/** The status and what the app said, for a request line as it is. */
function send(port: number, target: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(`GET ${target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`),
    );
    let answer = "";
    socket.setEncoding("latin1").on("data", (text: string) => {
      answer += text;
    });
    socket
      .on("error", reject)
      .on("close", () => resolve(`${answer.slice(9, 12)} ${/limited|open/.exec(answer) ?? ""}`));
  });
}

describe.each([
  ["node:http", httpApp],
  ["Express", expressApp],
])("middleware for %s", (_name, createApp) => {
  it("lets no spelling of a path reach a route past its limit", async () => {
    const { url, close } = await listenOnLoopback(createServer(createApp()));
    const port = Number(new URL(url).port);
    try {
      for (const path of ["/v1/login", "/v1/orders"]) expect(await send(port, path)).toBe("200 limited");
      for (const target of [
        "//public/v1/login",
        "///public/v1/login",
        "/\\public/v1/login",
        "/v1//../login",
        "/public/..//v1/login",
        "/v1/orders/../../public/x",
        "/v1/orders/%2e%2e/%2e%2e/public/x",
        "http:///public/v1/login",
        "/public/x/%2e%2e/../v1/login",
      ])
        expect(await send(port, target), target).toMatch(/^429 /);
      expect(await send(port, "/public//x/")).toBe("200 open");
    } finally {
      await close();
    }
  });
});
