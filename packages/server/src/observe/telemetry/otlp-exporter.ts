import type { Logger } from "./logger.ts";

/** A span that has ended. Times are epoch milliseconds, with fractions. */
export interface EndedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly traceState: string | undefined;
  readonly name: string;
  readonly kind: "internal" | "server" | "client";
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  /** The error; undefined if there was none. */
  readonly error: string | undefined;
}

export type AttributeValue = string | number | boolean | undefined;

export interface OtlpExporterOptions {
  /** As in OTEL_EXPORTER_OTLP_ENDPOINT: `/v1/traces` is appended. A user and password in it are sent as a header. */
  readonly endpoint: string;
  /** Extra headers, such as a key; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Identifies this service. */
  readonly resource: Readonly<Record<string, AttributeValue>>;
  readonly version: string;
  readonly log: Logger;
  readonly flushEveryMs?: number;
  readonly fetch?: typeof fetch;
}

export interface OtlpExporter {
  add(span: EndedSpan): void;
  readonly spans: { readonly exported: number; readonly dropped: number };
  close(withinMs: number): Promise<void>;
}

/** The most spans that wait; further ones are dropped. */
const maxQueued = 4_096;
const maxPerRequest = 512;
const requestWithinMs = 5_000;
const longestPauseMs = 30_000;
/** How rarely an unavailable collector is logged. */
const tellEveryMs = 10 * 60_000;

/**
 * Sends spans to a collector: OTLP over HTTP, in JSON. One request at a time; rejected batches are retried with growing
 * pauses until too much waits. Whatever it does, requests here never wait for it.
 */
export function createOtlpExporter(options: OtlpExporterOptions): OtlpExporter {
  const { log, flushEveryMs = 1_000, fetch: send = fetch } = options;
  const { url, headers } = parseTarget(options.endpoint, options.headers);
  const queue: EndedSpan[] = [];
  const spans = { exported: 0, dropped: 0 };
  let sending: Promise<void> | undefined;
  let failures = 0;
  let notBeforeMs = 0;
  let toldMs = -Infinity;
  let closed = false;

  function drop(count: number): void {
    spans.dropped += count;
  }

  /** Undefined if it was accepted; else why not, and whether it may be retried. */
  async function post(batch: readonly EndedSpan[], withinMs: number): Promise<Refusal | undefined> {
    try {
      const body = JSON.stringify(renderOtlp(batch, options.resource, options.version));
      const signal = AbortSignal.timeout(withinMs);
      const response = await send(url, { method: "POST", headers, body, signal, redirect: "error" });
      await response.body?.cancel();
      if (response.ok) return undefined;
      return { why: `it answered ${response.status}`, repeatable: [429, 502, 503, 504].includes(response.status) };
    } catch (error) {
      const { cause } = error as { readonly cause?: { readonly code?: string } };
      return { why: cause?.code ?? (error as Error).name, repeatable: true };
    }
  }

  async function sendSome(withinMs: number): Promise<void> {
    const batch = queue.splice(0, maxPerRequest);
    const refusal = await post(batch, withinMs);
    if (refusal === undefined) {
      spans.exported += batch.length;
      if (failures > 0 && toldMs > -Infinity) log.info("traces.recovered", { collector: shown(url) });
      failures = 0;
      toldMs = -Infinity;
      return;
    }
    failures += 1;
    notBeforeMs = performance.now() + Math.min(flushEveryMs * 2 ** Math.min(failures, 10), longestPauseMs);
    const room = refusal.repeatable && !closed ? Math.max(0, maxQueued - queue.length) : 0;
    queue.unshift(...batch.slice(0, room));
    drop(Math.max(0, batch.length - room));
    if (performance.now() - toldMs < tellEveryMs) return;
    toldMs = performance.now();
    log.warn("traces.failed", { collector: shown(url), why: refusal.why, dropped: spans.dropped });
  }

  function flush(): void {
    if (sending !== undefined || queue.length === 0 || performance.now() < notBeforeMs) return;
    sending = sendSome(requestWithinMs).finally(() => {
      sending = undefined;
      if (queue.length >= maxPerRequest) flush();
    });
  }

  const timer = setInterval(flush, flushEveryMs).unref();

  return {
    add(span): void {
      if (closed || queue.length >= maxQueued) drop(1);
      else queue.push(span);
      if (queue.length >= maxPerRequest) flush();
    },
    spans,
    async close(withinMs): Promise<void> {
      closed = true;
      clearInterval(timer);
      const untilMs = performance.now() + withinMs;
      const leftMs = (): number => Math.max(1, Math.ceil(untilMs - performance.now()));
      if (sending !== undefined) await Promise.race([sending, pause(leftMs())]);
      while (queue.length > 0 && performance.now() < untilMs) {
        const before = failures;
        await sendSome(leftMs());
        if (failures > before) break;
      }
      drop(queue.splice(0).length);
    },
  };
}

interface Refusal {
  readonly why: string;
  readonly repeatable: boolean;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

function parseTarget(
  endpoint: string,
  more: Readonly<Record<string, string>> = {},
): { readonly url: URL; readonly headers: Readonly<Record<string, string>> } {
  const url = new URL(endpoint);
  const headers: Record<string, string> = {};
  if (url.username !== "" || url.password !== "") {
    const access = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    headers.authorization = `Basic ${Buffer.from(access).toString("base64")}`;
    url.username = "";
    url.password = "";
  }
  url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, "")}/v1/traces`;
  return { url, headers: { ...headers, ...more, "content-type": "application/json" } };
}

/** Without possible secrets: keys are sometimes put into the query. */
function shown({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

const kinds = { internal: 1, server: 2, client: 3 } as const;

/** As `ExportTraceServiceRequest` is written in JSON: ids in hexadecimal, 64-bit numbers as texts. */
export function renderOtlp(
  spans: readonly EndedSpan[],
  resource: Readonly<Record<string, AttributeValue>>,
  version: string,
): unknown {
  return {
    resourceSpans: [
      {
        resource: { attributes: renderAttributes(resource) },
        scopeSpans: [{ scope: { name: "sluice", version }, spans: spans.map(renderSpan) }],
      },
    ],
  };
}

function renderSpan(span: EndedSpan): unknown {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(span.parentSpanId !== undefined && { parentSpanId: span.parentSpanId }),
    ...(span.traceState !== undefined && { traceState: span.traceState }),
    flags: 1,
    name: span.name,
    kind: kinds[span.kind],
    startTimeUnixNano: renderNanos(span.startMs),
    endTimeUnixNano: renderNanos(Math.max(span.endMs, span.startMs)),
    attributes: renderAttributes(span.attributes),
    status: span.error === undefined ? {} : { code: 2, message: span.error },
  };
}

/** Microseconds are as fine as a double can say today. */
function renderNanos(epochMs: number): string {
  return `${Math.round(epochMs * 1_000)}000`;
}

function renderAttributes(attributes: Readonly<Record<string, AttributeValue>>): readonly unknown[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: renderValue(value) }],
  );
}

function renderValue(value: string | number | boolean): unknown {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
