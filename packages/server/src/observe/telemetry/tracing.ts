import type { Decide } from "../../decide.ts";
import type { Protocol } from "../../protocol.ts";

/** Where a request comes from in a trace, in W3C's headers. */
export interface TraceCarrier {
  readonly traceparent?: string | readonly string[] | undefined;
  readonly tracestate?: string | readonly string[] | undefined;
}

/**
 * Traces of requests. Transports hold `Tracing | undefined`: where there is no exporter there is nothing to call, and
 * nothing is loaded.
 *
 *     const span = tracing?.start("http", "POST /v1/check", request.headers);
 *     const decide = span === undefined ? service.decide : span.around(service.decide);
 *     …
 *     span?.end({ status: 200 });
 */
export interface Tracing {
  /** Begins the span of a request. Undefined where it is not recorded: its caller does not want it, or there are too many. */
  start(protocol: Protocol, name: string, carrier?: TraceCarrier): RequestSpan | undefined;
  /** Spans handed to the collector until now, and those that were not. */
  readonly spans: { readonly exported: number; readonly dropped: number };
  /** Hands over what is left, within so long. */
  close(withinMs?: number): Promise<void>;
}

export interface RequestSpan {
  /** The same decisions, each asked in a span of its own below this one. */
  around(decide: Decide): Decide;
  /** Ends it, with what was answered. Later calls change nothing. */
  end(outcome?: SpanOutcome): void;
}

export interface SpanOutcome {
  /** As the protocol says it: 429, or `RESOURCE_EXHAUSTED`. */
  readonly status?: number | string;
  /** What went wrong here, not at the caller: a code. */
  readonly error?: string | undefined;
}
