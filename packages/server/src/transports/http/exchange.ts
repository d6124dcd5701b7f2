import type { Limiter } from "sluice";
import type { CountersStatus } from "../../counters/running-counters.ts";
import type { Decide } from "../../decide.ts";
import type { PolicyStatus } from "../../policy-reloader.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics } from "../../telemetry/metrics.ts";

/** What a handler sees of a request. Header names are lower case. */
export interface HttpRequest {
  readonly body: unknown;
  readonly bodyBytes: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** What a handler answers. A body that is not a string is sent as JSON. */
export interface HttpResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** What handlers may ask. */
export interface HttpContext {
  readonly limiter: Pick<Limiter, "explain" | "snapshot">;
  readonly decide: Decide;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** False from the moment the server is told to stop. */
  readonly accepting: () => boolean;
  readonly policyStatus: () => PolicyStatus;
  /** Undefined where counters are in this process's memory. */
  readonly countersStatus?: () => CountersStatus | undefined;
  readonly idempotencyHeader: boolean;
  /** Jitter of `Retry-After`, 0 … 1; undefined for none. */
  readonly random: (() => number) | undefined;
  readonly version: string;
}

export type Handler = (request: HttpRequest, context: HttpContext) => HttpResponse | Promise<HttpResponse>;
