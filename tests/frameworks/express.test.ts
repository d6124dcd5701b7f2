import { createServer } from "node:http";
import { findTicket, rateLimit } from "@sluice/middleware/express";
import express, { type Request } from "express";
import manifest from "express/package.json" with { type: "json" };
import { limit } from "sluice";
import { describe, expect, it, vi } from "vitest";
import { ask } from "./http-exchange.ts";
import { listenOnLoopback } from "./listen-on-loopback.ts";
import { describeMiddleware } from "./middleware-contract.ts";

describeMiddleware({
  name: `Express ${manifest.version}`,
  knowsRoutes: false,
  header: (name) => (request: Request) => request.header(name),
  start: async (limits, options) => {
    const app = express();
    app.use(rateLimit(limits, options));
    app.get("/hello", (_request, response) => void response.send("hello"));
    app.get("/items/:id", (request, response) => void response.send(request.params.id));
    app.get("/broken", () => {
      throw Object.assign(new Error("broken"), { expose: false });
    });
    app.post("/echo", (request, response) => void request.pipe(response));
    app.get("/stream", async (_request, response) => {
      for (let i = 0; i < 3; i++) {
        response.write("x".repeat(1000));
        await new Promise((resolve) => setImmediate(resolve));
      }
      response.end();
    });
    app.get("/charged", async (request, response) => {
      const ticket = findTicket(request)!;
      await ticket.charge(5);
      response.send(String(ticket.decision.remaining));
    });
    // Quiet: the test of a broken handler would print its error.
    app.set("env", "test");
    return listenOnLoopback(createServer(app));
  },
});

describe(`Express ${manifest.version}: the address`, () => {
  /** The codes of what the process warns of while one request is answered by an app of these settings. */
  async function collectWarnings(trustProxy: unknown): Promise<unknown[]> {
    vi.resetModules();
    const { rateLimit: fresh } = await import("@sluice/middleware/express");
    const codes: unknown[] = [];
    const hear = ({ code }: Error & { readonly code?: string }): void => void codes.push(code);
    process.on("warning", hear);
    const app = express().set("trust proxy", trustProxy);
    app.use(fresh("9/h"), (_request, response) => void response.send("hello"));
    const { url, close } = await listenOnLoopback(createServer(app));
    try {
      await ask(`${url}/`);
      // Warnings come a turn later.
      await new Promise((resolve) => setImmediate(resolve));
    } finally {
      process.off("warning", hear);
      await close();
    }
    return codes;
  }

  it("causes a warning if Express trusts every client about it, and only then", async () => {
    expect(await collectWarnings(true)).toContain("SLUICE_TRUSTS_ANYBODY");
    for (const setting of [false, 1, "loopback"])
      expect(await collectWarnings(setting)).not.toContain("SLUICE_TRUSTS_ANYBODY");
  });

  it("and the pattern, at a route, are Express's own", async () => {
    const app = express().set("trust proxy", "loopback");
    const router = express.Router();
    const limited = rateLimit(limit("1/h").by("endpoint", "ip"));
    router.get("/items/:id", limited, (request, response) => void response.send(request.params.id));
    app.use("/shop", router);
    const running = await listenOnLoopback(createServer(app));
    try {
      const url = `${running.url}/shop/items`;
      const from = (ip: string) => ({ headers: { "x-forwarded-for": ip } });
      expect((await ask(`${url}/1`, from("192.0.2.1"))).status).toBe(200);
      expect((await ask(`${url}/2`, from("192.0.2.1"))).status).toBe(429);
      expect((await ask(`${url}/2`, from("192.0.2.2"))).status).toBe(200);
    } finally {
      await running.close();
    }
  });
});
