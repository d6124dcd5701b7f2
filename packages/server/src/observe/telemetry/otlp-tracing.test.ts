import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createLimiter, MemoryCounters } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { createDecide } from "../../data-plane/service/create-decide.ts";
import type { Logger } from "./logger.ts";
import { createMetrics } from "./metrics.ts";
import { createOtlpTracing } from "./otlp-tracing.ts";
import type { Tracing } from "./tracing.ts";

/** Spans as they come over the wire. */
interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status: { readonly code?: number; readonly message?: string };
}

interface Collector {
  readonly url: string;
  readonly spans: readonly Span[];
  readonly requests: readonly { readonly url: string; readonly headers: IncomingHttpHeaders; readonly body: string }[];
  /** What it answers. */
  status: number;
}

const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

async function startCollector(port = 0): Promise<Collector> {
  const requests: { url: string; headers: IncomingHttpHeaders; body: string }[] = [];
  const spans: Span[] = [];
  const collector = { status: 200 };
  const server: Server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on("end", () => {
      requests.push({ url: request.url ?? "", headers: request.headers, body });
      if (collector.status === 200) spans.push(...spansIn(body));
      response.writeHead(collector.status, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  opened.push(() => {
    server.closeAllConnections();
    return new Promise((done) => server.close(done));
  });
  const { port: taken } = server.address() as AddressInfo;
  return Object.assign(collector, { url: `http://127.0.0.1:${taken}`, spans, requests });
}

function spansIn(body: string): readonly Span[] {
  const { resourceSpans } = JSON.parse(body) as {
    resourceSpans: readonly { scopeSpans: readonly { spans: readonly Span[] }[] }[];
  };
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}

function readAttributes({ attributes }: Span): Readonly<Record<string, unknown>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

function trace(endpoint: string, log: Partial<Logger> = {}): Tracing {
  const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };
  const tracing = createOtlpTracing({
    ...{ endpoint, version: "1.2.3", local: true, flushEveryMs: 10 },
    log: { ...silent, ...log },
  });
  opened.push(() => tracing.close(100));
  return tracing;
}

const headers = { "api-key": "k-1", "content-type": "text/plain" };

function decideBy(policies: Readonly<Record<string, unknown>>) {
  const limiter = createLimiter({ policies, counters: new MemoryCounters() });
  return createDecide({ limiter, metrics: createMetrics({ version: "1", sources: { generation: () => 1 } }) });
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const policies = { policies: [{ id: "p", limits: [{ by: ["user"], windows: ["1/h"] }] }] };
const soon = { timeout: 30_000, interval: 10 };

describe("traces", () => {
  it("are sent under the name and with the headers that are configured", async () => {
    const collector = await startCollector();
    const tracing = createOtlpTracing({
      ...{ endpoint: collector.url, serviceName: "edge", headers, version: "1", local: true, flushEveryMs: 10 },
      log: { debug() {}, info() {}, warn() {}, error() {} },
    });
    opened.push(() => tracing.close(100));
    tracing.start("http", "GET /livez")!.end();
    await expect.poll(() => collector.requests, soon).toHaveLength(1);
    const [asked] = collector.requests;
    expect(asked).toMatchObject({ headers: { "api-key": "k-1", "content-type": "application/json" } });
    expect(asked!.body).toContain('{"key":"service.name","value":{"stringValue":"edge"}}');
  });

  it("have a span for a request, below its caller's, and one for its check below that", async () => {
    const collector = await startCollector();
    const tracing = trace(collector.url);
    const span = tracing.start("http", "POST /v1/check", { traceparent: parent, tracestate: "vendor=1" })!;
    span.around(decideBy(policies)).one({ dimensions: { user: "a-secret-subject" } });
    span.end({ status: 200 });
    await expect.poll(() => collector.spans, soon).toHaveLength(2);
    const [check, request] = collector.spans as [Span, Span];
    expect(request).toMatchObject({
      ...{ traceId: "0af7651916cd43dd8448eb211c80319c", parentSpanId: "b7ad6b7169203331", traceState: "vendor=1" },
      ...{ name: "POST /v1/check", kind: 2, status: {} },
    });
    expect(check).toMatchObject({
      traceId: request.traceId,
      parentSpanId: request.spanId,
      name: "sluice.decide",
      kind: 1,
    });
    const decided = {
      "sluice.policy": "p",
      "sluice.allowed": true,
      "sluice.reason": "within_limits",
      "sluice.cost": "1",
    };
    expect(readAttributes(check)).toEqual(decided);
    expect(readAttributes(request)).toEqual({
      ...decided,
      ...{ "network.protocol.name": "http", "http.response.status_code": "200" },
    });
    for (const { startTimeUnixNano, endTimeUnixNano } of [check, request]) {
      expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano));
      expect(Math.abs(Number(BigInt(startTimeUnixNano) / 1_000_000n) - Date.now())).toBeLessThan(60_000);
    }
    const [asked] = collector.requests;
    expect(asked).toMatchObject({ url: "/v1/traces", headers: { "content-type": "application/json" } });
    expect(asked!.body).toContain('{"key":"service.name","value":{"stringValue":"sluice"}}');
    expect(asked!.body).not.toContain("a-secret-subject");
  });

  it("begin here if a request brings none, or none that can be parsed", async () => {
    const collector = await startCollector();
    const tracing = trace(collector.url);
    const strange = [
      "",
      "00-00000000000000000000000000000000-b7ad6b7169203331-01",
      "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
      "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
      "'; drop table spans",
    ];
    tracing.start("resp", "CL.THROTTLE")!.end();
    for (const traceparent of strange) tracing.start("http", "GET /", { traceparent })!.end();
    await expect.poll(() => collector.spans, soon).toHaveLength(7);
    expect(collector.spans.filter(({ parentSpanId }) => parentSpanId !== undefined)).toEqual([]);
    expect(new Set(collector.spans.map(({ traceId }) => traceId)).size).toBe(7);
    for (const { traceId, spanId } of collector.spans) expect(traceId + spanId).toMatch(/^[0-9a-f]{48}$/);
  });

  it("are not recorded if the caller does not record them, and not without bound", async () => {
    const tracing = trace((await startCollector()).url);
    expect(tracing.start("grpc", "x", { traceparent: parent.replace(/01$/, "00") })).toBeUndefined();
    const begun = Array.from({ length: 500 }, () => tracing.start("http", "GET /"));
    expect(begun.filter((span) => span !== undefined).length).toBeLessThanOrEqual(200);
  });

  it("include checks that were denied, refused, or asked together", async () => {
    const collector = await startCollector();
    const tracing = trace(collector.url);
    const span = tracing.start("grpc", "sluice.v1.RateLimiter/CheckBatch", { traceparent: parent })!;
    const decide = span.around(decideBy(policies));
    decide.one({ dimensions: { user: "u" } });
    decide.one({ dimensions: { user: "u" } });
    expect(() => decide.one({ policies: ["nowhere"] })).toThrow(/nowhere/);
    decide.together([{ dimensions: { user: "v" } }, { dimensions: { user: "w" } }]);
    span.end({ status: "OK" });
    span.end({ status: "twice" });
    await expect.poll(() => collector.spans, soon).toHaveLength(5);
    const [allowed, denied, refused, together, call] = collector.spans as [Span, Span, Span, Span, Span];
    expect(readAttributes(allowed)["sluice.allowed"]).toBe(true);
    expect(readAttributes(denied)).toMatchObject({ "sluice.allowed": false, "sluice.reason": "over_limit" });
    expect(refused.status).toEqual({ code: 2, message: "policy_not_found" });
    expect(readAttributes(together)).toEqual({ "sluice.checks": "2" });
    expect(readAttributes(call)).toMatchObject({
      ...{ "sluice.checks": "4", "sluice.denied": "1", "rpc.response.status_code": "OK" },
    });
  });

  it("are handed over when the server stops", async () => {
    const collector = await startCollector();
    const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };
    const tracing = createOtlpTracing({ endpoint: `${collector.url}/otlp/`, version: "1", local: false, log: silent });
    tracing.start("http", "GET /")!.end();
    expect(collector.spans).toEqual([]);
    await tracing.close();
    expect(collector.spans).toHaveLength(1);
    expect(collector.requests[0]!.url).toBe("/otlp/v1/traces");
    expect(tracing.spans).toEqual({ exported: 1, dropped: 0 });
    tracing.start("http", "GET /")!.end();
    expect(tracing.spans).toEqual({ exported: 1, dropped: 1 });
  });

  it("wait for a collector that is unavailable or refuses, which is logged once, and again when it is back", async () => {
    const collector = await startCollector();
    collector.status = 503;
    const told: string[] = [];
    const say = (event: string): void => void told.push(event);
    const tracing = trace(collector.url, { warn: say, info: say });
    tracing.start("http", "GET /")!.end();
    await expect.poll(() => collector.requests.length, soon).toBeGreaterThan(2);
    expect(told).toEqual(["traces.failed"]);
    collector.status = 200;
    await expect.poll(() => collector.spans, soon).toHaveLength(1);
    await expect.poll(() => told.slice(1), soon).toEqual(["traces.recovered"]);
    expect(tracing.spans).toEqual({ exported: 1, dropped: 0 });
  });

  it("are dropped rather than kept without bound, and requests do not wait for a collector that hangs", async () => {
    const hanging = createServer(() => undefined);
    await new Promise<void>((resolve) => hanging.listen(0, "127.0.0.1", resolve));
    opened.push(() => {
      hanging.closeAllConnections();
      return new Promise((done) => hanging.close(done));
    });
    const tracing = trace(`http://127.0.0.1:${(hanging.address() as AddressInfo).port}`);
    for (let i = 0; i < 900; i++) {
      const span = tracing.start("http", "GET /", { traceparent: parent })!;
      const decide = span.around(decideBy(policies));
      for (let check = 0; check < 8; check++) decide.one({ dimensions: { user: "u" } });
      span.end();
    }
    expect(tracing.spans.exported).toBe(0);
    expect(tracing.spans.dropped).toBeGreaterThan(8_100 - 4_096 - 512 - 1);
    await tracing.close(50);
    expect(tracing.spans.dropped).toBeGreaterThanOrEqual(8_100 - 512);
  });

  it("send a user and password of the address as a header, and never log them", async () => {
    const collector = await startCollector();
    collector.status = 401;
    const told: unknown[] = [];
    const tracing = trace(collector.url.replace("://", "://otel:s3cret@"), {
      warn: (_event, fields) => told.push(fields),
    });
    tracing.start("http", "GET /")!.end();
    await expect.poll(() => told, soon).toHaveLength(1);
    expect(collector.requests[0]!.headers.authorization).toBe(`Basic ${btoa("otel:s3cret")}`);
    expect(JSON.stringify(told)).not.toContain("s3cret");
    expect(tracing.spans).toEqual({ exported: 0, dropped: 1 });
  });
});
