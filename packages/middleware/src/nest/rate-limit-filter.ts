import { type ArgumentsHost, Catch, type ExceptionFilter } from "@nestjs/common";
import type { NestResponse } from "./exchange.ts";
import { RateLimitException } from "./rate-limit-exception.ts";

/**
 * Answers refusals over HTTP with the problem body and its content type. Nest's own filter would send `application/json`.
 * `RateLimitModule` registers this filter. If a catch-all filter of the app comes first, it sees an `HttpException`.
 */
export class RateLimitFilter implements ExceptionFilter<RateLimitException> {
  catch(exception: RateLimitException, host: ArgumentsHost): void {
    // GraphQL renders errors itself.
    if (host.getType<string>() !== "http") throw exception;
    const { status, headers, body } = exception.refused;
    const contentType = headers["content-type"]!;
    const response = host.getArgByIndex<NestResponse>(1);
    if ("raw" in response) {
      if (response.raw.headersSent) return;
      // Fastify would add a charset to a string, which this content type does not have.
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
