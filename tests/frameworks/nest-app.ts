import "reflect-metadata";
import { Readable } from "node:stream";
import {
  All,
  Controller,
  Get,
  HttpCode,
  type INestApplication,
  Module,
  type ModuleMetadata,
  NotFoundException,
  Param,
  Post,
  Req,
  Res,
  StreamableFile,
  type Type,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { findTicket, type NestRequest } from "@sluice/middleware/nest";
import { inject } from "vitest";
import type { RunningApp } from "./framework-under-test.ts";

/** Decorates a method, as decorators before its name and its parameters would. */
export function decorate<Class extends object>(
  prototype: Class,
  method: keyof Class & string,
  ...decorators: readonly MethodDecorator[]
): void {
  for (const one of decorators.toReversed()) {
    const descriptor = Object.getOwnPropertyDescriptor(prototype, method)!;
    one(prototype, method, descriptor);
  }
}

export const oldest: boolean = inject("majors") === "oldest";

/** What the contract asks of an app. */
class Routes {
  hello(): string {
    return "hello";
  }

  item(id: string): string {
    return id;
  }

  broken(): never {
    throw new Error("broken");
  }

  echo(request: NestRequest, response: NestRequest): void {
    if ("raw" in response) response.send(request.body);
    else request.pipe(response);
  }

  stream(): StreamableFile {
    return new StreamableFile(Readable.from([1, 2, 3].map(() => Buffer.from("x".repeat(1000)))));
  }

  async charged(request: NestRequest): Promise<string> {
    const ticket = findTicket(request)!;
    await ticket.charge(5);
    return String(ticket.decision.remaining);
  }

  /** Nest guards routes only; this one makes a route of everything else. */
  nowhere(): never {
    throw new NotFoundException();
  }
}

Controller()(Routes);
decorate(Routes.prototype, "hello", Get("hello"));
decorate(Routes.prototype, "item", Get("items/:id"));
Param("id")(Routes.prototype, "item", 0);
decorate(Routes.prototype, "broken", Get("broken"));
decorate(Routes.prototype, "echo", Post("echo"), HttpCode(200));
Req()(Routes.prototype, "echo", 0);
Res()(Routes.prototype, "echo", 1);
decorate(Routes.prototype, "stream", Get("stream"));
decorate(Routes.prototype, "charged", Get("charged"));
Req()(Routes.prototype, "charged", 0);
decorate(Routes.prototype, "nowhere", All("*"));

export const contractRoutes: Type = Routes;

export type Platform = "express" | "fastify";

/** Starts an app of Nest on loopback. */
export async function startNest(
  metadata: ModuleMetadata,
  platform: Platform = "express",
  prepare: (app: INestApplication) => void = () => {},
): Promise<RunningApp & { readonly app: INestApplication }> {
  class AppModule {}
  Module(metadata)(AppModule);
  // Quiet: the test of a broken handler would print its error.
  const options = { logger: false, abortOnError: false } as const;
  const app = await (platform === "express"
    ? NestFactory.create(AppModule, options)
    : NestFactory.create(AppModule, await fastifyThatStreams(), options));
  prepare(app);
  await app.listen(0, "127.0.0.1");
  const url = (await app.getUrl()).replace(/\/$/, "");
  return {
    app,
    url,
    close: async () => {
      app.getHttpServer().closeAllConnections();
      await app.close();
    },
  };
}

async function fastifyThatStreams(): Promise<import("@nestjs/platform-fastify").FastifyAdapter> {
  const { FastifyAdapter } = await import("@nestjs/platform-fastify");
  const adapter = new FastifyAdapter();
  const fastify = adapter.getInstance();
  fastify.removeContentTypeParser("text/plain");
  fastify.addContentTypeParser("text/plain", (_request, payload, done) => done(null, payload));
  return adapter;
}
