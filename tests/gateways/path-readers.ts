import { createServer, type RequestListener, type Server } from "node:http";
import { createRequire } from "node:module";
import { type AddressInfo, connect } from "node:net";
import { getRequestListener } from "@hono/node-server";
import Router from "@koa/router";
import { startCaddy, startNginx } from "@sluice/test-servers";
import express from "express";
import { fastify } from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { type LimitedRoute, limitedRoutes } from "./path-spellings.ts";

/** A server that routes as its users do, and answers with the name of the route. */
export interface PathReader {
  readonly name: string;
  /** The limited route that a request target reaches; undefined for none, also if it is refused or redirected. */
  findRoute(target: string): Promise<LimitedRoute | undefined>;
  close(): Promise<void>;
}

const routes = Object.keys(limitedRoutes) as LimitedRoute[];

/** `/v1/items/{item}` as routers of Node have it. Only prefixes are left out: each has them in another way. */
const nodeRoutes = Object.entries(limitedRoutes)
  .filter(([name]) => name !== "orders")
  .map(([name, pattern]) => [name, pattern.replace(/\{(\w+)\}/, ":$1")] as const);

/** Real servers and routers, each on a separate port. */
export async function startReaders(): Promise<readonly PathReader[]> {
  const oldest = createRequire(new URL("../oldest/package.json", import.meta.url));
  return Promise.all([
    serve("node:http, new URL(url, base)", ({ url }) => byPath(pathOfUrl(url ?? ""))),
    serve("node:http, the text of the path", ({ url }) => byPath((url ?? "").replace(/\?.*/s, ""))),
    serve("node:http, the path decoded", ({ url }) => byPath(decoded((url ?? "").replace(/[?#].*/s, "")))),
    onNode("Express, newest", expressApp(express)),
    onNode("Express, oldest", expressApp(oldest("express") as typeof express)),
    onNode("Fastify", await fastifyApp()),
    onNode("Hono", honoApp()),
    onNode("Koa and @koa/router, newest", koaApp(Koa)),
    onNode("Koa and @koa/router, oldest", koaApp(oldest("koa") as typeof Koa)),
    nginx("nginx", ""),
    nginx("nginx, merge_slashes off", "merge_slashes off;"),
    caddy(),
  ]);
}

/** What a server without a router would do that compares paths: the table of routes by hand. */
export function byPath(path: string): LimitedRoute | undefined {
  const segments = path.split("/").slice(1);
  const [first, second, third] = segments;
  if (path === "/v1/login" || path === "/v1/login/") return "login";
  if (first === "v1" && second === "orders") return "orders";
  if (first === "v1" && second === "items" && segments.length === 3) return "item";
  if (first === "t" && third === "login" && segments.length === 3) return "tenant";
  return decoded(path) === "/café" ? "cafe" : undefined;
}

function pathOfUrl(url: string): string {
  try {
    return new URL(url, "http://base").pathname;
  } catch {
    return "";
  }
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function expressApp(create: typeof express): RequestListener {
  const app = create();
  app.use("/v1/orders", (_request, response) => void response.end("orders"));
  for (const [name, path] of nodeRoutes) app.all(encodeURI(path), (_request, response) => void response.end(name));
  return app;
}

async function fastifyApp(): Promise<RequestListener> {
  const app = fastify();
  app.all("/v1/orders", (_request, reply) => reply.send("orders"));
  app.all("/v1/orders/*", (_request, reply) => reply.send("orders"));
  for (const [name, path] of nodeRoutes) app.all(path, (_request, reply) => reply.send(name));
  await app.ready();
  return (request, response) => app.routing(request, response);
}

function honoApp(): RequestListener {
  const app = new Hono();
  app.all("/v1/orders/*", (c) => c.text("orders"));
  for (const [name, path] of nodeRoutes) app.all(path, (c) => c.text(name));
  return getRequestListener(app.fetch);
}

function koaApp(Create: typeof Koa): RequestListener {
  const app = new Create();
  const router = new Router();
  router.all("/v1/orders/*rest", (context) => {
    context.body = "orders";
  });
  for (const [name, path] of nodeRoutes) {
    router.all(encodeURI(path), (context) => {
      context.body = name;
    });
  }
  app.use(router.routes() as unknown as Koa.Middleware);
  app.on("error", () => {});
  return app.callback();
}

function serve(
  name: string,
  findRoute: (request: { readonly url?: string | undefined }) => string | undefined,
): Promise<PathReader> {
  return onNode(name, (request, response) => void response.end(findRoute(request) ?? ""));
}

async function onNode(name: string, listener: RequestListener): Promise<PathReader> {
  // As strict servers are: a lenient one takes bytes beyond ASCII as well.
  const server: Server = createServer({ insecureHTTPParser: true }, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return createReader(name, (server.address() as AddressInfo).port, close);
}

async function nginx(name: string, setting: string): Promise<PathReader> {
  const gateway = await startNginx({
    httpFor: (port) => `
server {
    listen 127.0.0.1:${port};
    ${setting}
    location = /v1/login { return 200 login; }
    location /v1/orders { return 200 orders; }
    location ~ ^/v1/items/[^/]*$ { return 200 item; }
    location ~ ^/t/[^/]*/login$ { return 200 tenant; }
    location = /café { return 200 cafe; }
    location / { return 404; }
}`,
  });
  return createReader(name, gateway.port, () => gateway.close());
}

async function caddy(): Promise<PathReader> {
  const gateway = await startCaddy({
    sitesFor: (port) => `http://127.0.0.1:${port}, http://h:${port} {
	respond /v1/login login
	respond /v1/orders* orders
	@item path_regexp ^/v1/items/[^/]*$
	respond @item item
	@tenant path_regexp ^/t/[^/]*/login$
	respond @tenant tenant
	respond /café cafe
	respond 404
}`,
  });
  return createReader("Caddy", gateway.port, () => gateway.close());
}

function createReader(name: string, port: number, close: () => Promise<void>): PathReader {
  return {
    name,
    close,
    findRoute: async (target) => {
      const answer = await sendTarget(port, target);
      if (!/^HTTP\/1\.1 200 /.test(answer)) return undefined;
      const body = answer.slice(answer.indexOf("\r\n\r\n"));
      return routes.find((route) => new RegExp(`^(?:[0-9a-f]+\r\n)?${route}\\b`).test(body.trimStart()));
    },
  };
}

/** Sends a request line as it is, each character a byte, and resolves to the whole answer. */
export function sendTarget(port: number, target: string, headers: readonly string[] = []): Promise<string> {
  return new Promise((resolve) => {
    const lines = [`GET ${target} HTTP/1.1`, "Host: h", "Connection: close", ...headers, "", ""];
    const socket = connect(port, "127.0.0.1", () => socket.write(Buffer.from(lines.join("\r\n"), "latin1")));
    let answer = "";
    socket.setEncoding("latin1").on("data", (text: string) => {
      answer += text;
    });
    socket.on("error", () => {}).on("close", () => resolve(answer));
  });
}
