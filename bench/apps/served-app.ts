// One app in a separate process, so that its CPU time can be measured: `node served-app.ts <name> [<redis url>]`. Sends its
// port to the parent, and answers every message with the CPU time it has used.
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
// Every app loads everything: Node's optimizations depend on what was loaded before, which must not be measured.
import fastifyRateLimit from "@fastify/rate-limit";
import { createClient } from "@redis/client";
import { rateLimit as limitExpress } from "@sluice/middleware/express";
import { rateLimit as limitFastify } from "@sluice/middleware/fastify";
import { redis } from "@sluice/redis";
import express, { type RequestHandler } from "express";
import { rateLimit as expressRateLimit } from "express-rate-limit";
import { type FastifyInstance, fastify } from "fastify";
import { type RedisReply, RedisStore } from "rate-limit-redis";

/** Never reached, so every request passes. */
const perHour = 1_000_000_000;
const windowMs = 3_600_000;

/** Checks never time out here: an answer without counters would cost nothing. */
const patientMs = 10_000;

type App = (redisUrl: string) => Promise<RequestListener>;

/** As users write it: the defaults, and the trusted proxy. */
function expressWith(...limits: readonly RequestHandler[]): RequestListener {
  const app = express();
  app.set("trust proxy", "127.0.0.1");
  for (const limit of limits) app.use(limit);
  app.get("/orders/:id", (_request, response) => void response.end("ok"));
  return app;
}

async function fastifyWith(limit?: (app: FastifyInstance) => PromiseLike<unknown>): Promise<RequestListener> {
  const app: FastifyInstance = fastify({ trustProxy: "127.0.0.1" });
  await limit?.(app);
  app.get("/orders/:id", (_request, reply) => reply.send("ok"));
  await app.ready();
  return (request, response) => app.routing(request, response);
}

const apps: Readonly<Record<string, App>> = {
  express: async () => expressWith(),
  "express, sluice": async () => expressWith(limitExpress(`${perHour}/h`)),
  "express, express-rate-limit": async () => expressWith(expressRateLimit({ windowMs, limit: perHour })),
  fastify: () => fastifyWith(),
  "fastify, sluice": () => fastifyWith((app) => app.register(limitFastify(`${perHour}/h`))),
  "fastify, @fastify/rate-limit": () =>
    fastifyWith((app) => app.register(fastifyRateLimit, { max: perHour, timeWindow: windowMs })),
  "express, sluice on redis": async (url) => {
    const counters = redis(url, { deadlineMs: patientMs });
    await counters.connected();
    return expressWith(limitExpress(`${perHour}/h`, { name: "bench", counters }));
  },
  "express, rate-limit-redis": async (url) => {
    const client = createClient({ url });
    await client.connect();
    const sendCommand = (...command: string[]): Promise<RedisReply> => client.sendCommand(command);
    return expressWith(expressRateLimit({ windowMs, limit: perHour, store: new RedisStore({ sendCommand }) }));
  },
};

async function serve(name: string, redisUrl: string): Promise<void> {
  const open = apps[name];
  if (open === undefined) throw new Error(`unknown app ${name}`);
  const server = createServer(await open(redisUrl));
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuUs: user + system });
  });
  process.on("disconnect", () => process.exit());
  process.send?.({ port: (server.address() as AddressInfo).port });
}

await serve(process.argv[2] ?? "", process.argv[3] ?? "");
