/**
 * An app with a limit before its route: answers one request, closes its server as an app does, and does nothing else. It prints
 * the status of the answer. The process that started it sees whether it then ends.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { redis } from "@sluice/redis";
import { Redis } from "ioredis";
import { limit, type OneLimit } from "sluice";

const [framework, source, url = ""] = process.argv.slice(2);

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function askAndClose(port: number, close: () => unknown): Promise<void> {
  const { status } = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } });
  process.stdout.write(`${status}\n`);
  await close();
}

async function serve(server: Server): Promise<void> {
  await askAndClose(await listen(server), () => server.close());
}

/** Where counters are; the app holds no reference to them, except to a client that it created itself. */
function limits(): { readonly limits: OneLimit; readonly done: () => void } {
  const client = source === "ioredis" ? new Redis(url) : undefined;
  const counters = redis(client ?? url, { warn: false, deadlineMs: 500 });
  // Every app has a counter to itself: together they ask more often than one limit would allow.
  return {
    limits: limit("5/m", { name: `${framework}-${source}`, counters }).by("ip"),
    done: () => client?.disconnect(),
  };
}

const given = limits();
switch (framework) {
  case "express": {
    const { default: express } = await import("express");
    const { rateLimit } = await import("@sluice/middleware/express");
    const app = express();
    app.use(rateLimit(given.limits));
    app.get("/", (_request, response) => void response.send("hello"));
    await serve(createServer(app));
    break;
  }
  case "koa": {
    const { default: Koa } = await import("koa");
    const { rateLimit } = await import("@sluice/middleware/koa");
    const app = new Koa();
    app.use(rateLimit(given.limits));
    app.use((context) => {
      context.body = "hello";
    });
    await serve(createServer(app.callback()));
    break;
  }
  case "hono": {
    const { getRequestListener } = await import("@hono/node-server");
    const { Hono } = await import("hono");
    const { rateLimit } = await import("@sluice/middleware/hono");
    const app = new Hono();
    app.use(rateLimit(given.limits));
    app.get("/", (c) => c.text("hello"));
    await serve(createServer(getRequestListener(app.fetch)));
    break;
  }
  case "fastify": {
    const { fastify } = await import("fastify");
    const { rateLimit } = await import("@sluice/middleware/fastify");
    const app = fastify();
    await app.register(rateLimit(given.limits));
    app.get("/", async () => "hello");
    await app.listen({ host: "127.0.0.1", port: 0 });
    await askAndClose((app.server.address() as AddressInfo).port, () => app.close());
    break;
  }
  case "fastify-rate-limit": {
    const { fastify } = await import("fastify");
    const { default: rateLimit } = await import("@sluice/middleware/fastify-rate-limit");
    const client = new Redis(url);
    const app = fastify();
    await app.register(rateLimit, { max: 5, timeWindow: 60_000, redis: client });
    app.get("/", async () => "hello");
    await app.listen({ host: "127.0.0.1", port: 0 });
    await askAndClose((app.server.address() as AddressInfo).port, () => app.close());
    client.disconnect();
    break;
  }
  case "nest": {
    await import("reflect-metadata");
    const { Controller, Get, Module } = await import("@nestjs/common");
    const { NestFactory } = await import("@nestjs/core");
    const { RateLimitModule } = await import("@sluice/middleware/nest");
    class App {}
    class Routes {
      hello(): string {
        return "hello";
      }
    }
    Get("/")(Routes.prototype, "hello", Object.getOwnPropertyDescriptor(Routes.prototype, "hello")!);
    Controller()(Routes);
    Module({ imports: [RateLimitModule.forRoot(given.limits)], controllers: [Routes] })(App);
    const app = await NestFactory.create(App, { logger: false });
    await app.listen(0, "127.0.0.1");
    await askAndClose((app.getHttpServer().address() as AddressInfo).port, () => app.close());
    break;
  }
  case "script": {
    // Nothing else keeps the process alive while it waits.
    const { allowed } = await given.limits.check("192.0.2.1");
    process.stdout.write(`${allowed ? 200 : 429}\n`);
    break;
  }
  default:
    throw new Error(`there is no app for ${framework}`);
}
given.done();
