import type { Decide } from "../../decide.ts";
import type { Protocol } from "../../protocol.ts";

/** A request's place in a trace, in W3C's headers. */
export interface TraceCarrier {
  readonly traceparent?: string | readonly string[] | undefined;
  readonly tracestate?: string | readonly string[] | undefined;
}

/**
 * Traces of requests. Transports hold `Tracing | undefined`: without an exporter there is nothing to call, and nothing
 * is loaded.
 *
 *     const span = tracing?.start("http", "POST /v1/check", request.headers);
 *     const decide = span === undefined ? service.decide : span.around(service.decide);
 *     …
 *     span?.end({ status: 200 });
 */
export interface Tracing {
  /**
   * Begins the span of a request. Undefined if it is not recorded: its caller does not want it, or there are too many.
   */
  start(protocol: Protocol, name: string, carrier?: TraceCarrier): RequestSpan | undefined;
  /** Spans accepted by the collector so far, and those that were not. */
  readonly spans: { readonly exported: number; readonly dropped: number };
  /** Sends what is left, within this time. */
  close(withinMs?: number): Promise<void>;
}

export interface RequestSpan {
  /** The same decisions, each in a separate span below this one. */
  around(decide: Decide): Decide;
  /** Ends it, with the outcome. Later calls change nothing. */
  end(outcome?: SpanOutcome): void;
}

export interface SpanOutcome {
  /** The protocol's status: 429, or `RESOURCE_EXHAUSTED`. */
  readonly status?: number | string;
  /** The code of an error here, not the caller's. */
  readonly error?: string | undefined;
}
