import { type ArgumentsHost, Catch, type ExceptionFilter } from "@nestjs/common";
import type { NestResponse } from "./exchange.ts";
import { RateLimitException } from "./rate-limit-exception.ts";

/**
 * Answers refusals over HTTP with the problem body as it is, which Nest's own filter would not: it knows no other type than
 * `application/json`. `RateLimitModule` brings it along. A filter of the app that catches everything may come first; it sees an
 * `HttpException`.
 */
export class RateLimitFilter implements ExceptionFilter<RateLimitException> {
  catch(exception: RateLimitException, host: ArgumentsHost): void {
    // GraphQL has an answer of its own.
    if (host.getType<string>() !== "http") throw exception;
    const { status, headers, body } = exception.refused;
    const contentType = headers["content-type"]!;
    const response = host.getArgByIndex<NestResponse>(1);
    if ("raw" in response) {
      if (response.raw.headersSent) return;
      // To a text Fastify would add a charset, which this type does not have.
      response.status(status).header("content-type", contentType).send(Buffer.from(body));
      return;
    }
    if (response.headersSent) {
      response.end();
      return;
    }
    response.statusCode = status;
    response.setHeader("Content-Type", contentType);
    response.end(body);
  }
}

Catch(RateLimitException)(RateLimitFilter);
