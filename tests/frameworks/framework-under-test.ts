import type { Limits, RateLimitOptions } from "@sluice/middleware";

/** An app that listens on loopback. */
export interface RunningApp {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  close(): Promise<void>;
}

/** What a test says to the middleware, whatever a request is in its framework. */
// biome-ignore lint/suspicious/noExplicitAny: each framework has its own requests, and no test reads them.
export type AnyOptions = RateLimitOptions<any>;

/**
 * A framework with our middleware before all of its routes:
 *
 * - `GET /hello` answers `hello`
 * - `GET /items/:id` answers with the id
 * - `GET /broken` throws in its handler: the framework answers 500
 * - `POST /echo` streams the request's body back
 * - `GET /stream` streams three pieces of 1 000 bytes
 * - `GET /charged` charges 5 by the request's ticket (`findTicket`), and answers with `decision.remaining` of before
 * - anything else is not found
 */
export interface FrameworkUnderTest {
  readonly name: string;
  start(limits: Limits, options?: AnyOptions): Promise<RunningApp>;
  /** Reads a header from the framework's own request, for `dimensions` and the like. */
  header(name: string): (request: never) => string | undefined;
  /** Whether the middleware, before all routes, knows which of them it is going to be. */
  readonly knowsRoutes: boolean;
}
