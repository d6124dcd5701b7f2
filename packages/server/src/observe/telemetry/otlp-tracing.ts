import { hostname } from "node:os";
import { type CheckRequest, type Decision, SluiceError } from "sluice";
import type { TogetherOptions } from "sluice/internal";
import type { Decide } from "../../decide.ts";
import type { Protocol } from "../../protocol.ts";
import type { Logger } from "./logger.ts";
import { type AttributeValue, createOtlpExporter, type EndedSpan, type OtlpExporter } from "./otlp-exporter.ts";
import { newSpanId, newTraceId, parseTraceParent, type TraceParent } from "./trace-context.ts";
import type { RequestSpan, SpanOutcome, Tracing } from "./tracing.ts";

export interface OtlpTracingOptions {
  readonly endpoint: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The name of this service. Absent: `sluice`. */
  readonly serviceName?: string;
  readonly version: string;
  readonly worker?: number | undefined;
  /** Whether counters are in this process: asking them is then not a remote call. */
  readonly local: boolean;
  readonly log: Logger;
  readonly flushEveryMs?: number;
}

/** The most requests recorded in a second: those whose callers record them, and those that begin a trace here. */
const perSecond = { wanted: 1_000, own: 100 } as const;
/** The most checks of one request with a separate span. */
const maxChecks = 32;
const closeWithinMs = 2_000;

/** Traces by OTLP over HTTP. Attributes say what was decided and by which policy; never about whom. */
export function createOtlpTracing(options: OtlpTracingOptions): Tracing {
  const { endpoint, headers = {}, serviceName = "sluice", version, worker, log, flushEveryMs } = options;
  const exporter = createOtlpExporter({
    endpoint,
    headers,
    version,
    log,
    resource: {
      "service.name": serviceName,
      "service.version": version,
      "service.instance.id": `${hostname()}:${process.pid}`,
      "sluice.worker": worker,
      "host.name": hostname(),
      "process.pid": process.pid,
    },
    ...(flushEveryMs !== undefined && { flushEveryMs }),
  });
  const mayRecord = { wanted: perSecondBudget(perSecond.wanted), own: perSecondBudget(perSecond.own) };
  const counters = options.local ? ("internal" as const) : ("client" as const);

  return {
    start(protocol, name, carrier = {}): RequestSpan | undefined {
      const parent = parseTraceParent(carrier);
      if (parent?.sampled === false) return undefined;
      if (!mayRecord[parent === undefined ? "own" : "wanted"]()) return undefined;
      return new OtlpSpan(exporter, counters, protocol, name, parent);
    },
    spans: exporter.spans,
    close: (withinMs = closeWithinMs) => exporter.close(withinMs),
  };
}

class OtlpSpan implements RequestSpan {
  readonly #exporter: OtlpExporter;
  readonly #counters: EndedSpan["kind"];
  readonly #protocol: Protocol;
  readonly #name: string;
  readonly #parent: TraceParent | undefined;
  readonly #traceId: string;
  readonly #spanId = newSpanId();
  readonly #startMs = epochMs();
  #checks = 0;
  #denied = 0;
  /** The first check's decision; the others are only counted. */
  #decision: Decision | undefined;
  #ended = false;

  constructor(
    exporter: OtlpExporter,
    counters: EndedSpan["kind"],
    protocol: Protocol,
    name: string,
    parent: TraceParent | undefined,
  ) {
    this.#exporter = exporter;
    this.#counters = counters;
    this.#protocol = protocol;
    this.#name = name;
    this.#parent = parent;
    this.#traceId = parent?.traceId ?? newTraceId();
  }

  around(decide: Decide): Decide {
    return {
      one: (request: CheckRequest) =>
        this.#asking(
          "sluice.decide",
          () => decide.one(request),
          (decision) => [decision],
        ),
      together: (requests: readonly CheckRequest[], asked?: TogetherOptions) =>
        this.#asking(
          "sluice.decide_together",
          () => decide.together(requests, asked),
          (decisions) => decisions,
        ),
      get pending(): number {
        return decide.pending;
      },
    };
  }

  end({ status, error }: SpanOutcome = {}): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#add(this.#name, "server", this.#spanId, this.#parent?.spanId, this.#startMs, error, {
      "network.protocol.name": this.#protocol,
      [statusNames[this.#protocol]]: status,
      ...(this.#checks > 1
        ? { "sluice.checks": this.#checks, "sluice.denied": this.#denied }
        : decisionAttributes(this.#decision)),
    });
  }

  #asking<T>(name: string, ask: () => T | Promise<T>, decisionsOf: (answer: T) => readonly Decision[]): T | Promise<T> {
    const startMs = epochMs();
    const decided = (answer: T): T => {
      const decisions = decisionsOf(answer);
      for (const decision of decisions) this.#note(decision);
      const [only] = decisions.length === 1 ? decisions : [undefined];
      this.#addCheck(
        name,
        startMs,
        undefined,
        only === undefined ? { "sluice.checks": decisions.length } : decisionAttributes(only),
      );
      return answer;
    };
    const refused = (error: unknown): never => {
      const code = error instanceof SluiceError ? error.code : "internal";
      this.#addCheck(name, startMs, code, {});
      throw error;
    };
    try {
      const answer = ask();
      return answer instanceof Promise ? answer.then(decided, refused) : decided(answer);
    } catch (error) {
      return refused(error);
    }
  }

  #note(decision: Decision): void {
    this.#checks += 1;
    if (!decision.allowed) this.#denied += 1;
    this.#decision ??= decision;
  }

  #addCheck(
    name: string,
    startMs: number,
    error: string | undefined,
    attributes: Readonly<Record<string, AttributeValue>>,
  ): void {
    if (this.#checks <= maxChecks)
      this.#add(name, this.#counters, newSpanId(), this.#spanId, startMs, error, attributes);
  }

  #add(
    name: string,
    kind: EndedSpan["kind"],
    spanId: string,
    parentSpanId: string | undefined,
    startMs: number,
    error: string | undefined,
    attributes: Readonly<Record<string, AttributeValue>>,
  ): void {
    const traceState = this.#parent?.traceState;
    const endMs = epochMs();
    this.#exporter.add({
      ...{ traceId: this.#traceId, spanId, parentSpanId, traceState, name, kind, startMs, endMs, attributes, error },
    });
  }
}

const statusNames: Readonly<Record<Protocol, string>> = {
  http: "http.response.status_code",
  grpc: "rpc.response.status_code",
  resp: "db.response.status_code",
  admin: "http.response.status_code",
};

function decisionAttributes(decision: Decision | undefined): Readonly<Record<string, AttributeValue>> {
  if (decision === undefined) return {};
  const { policy, allowed, reason, cost, degraded } = decision;
  return {
    "sluice.policy": policy,
    "sluice.allowed": allowed,
    "sluice.reason": reason,
    "sluice.cost": cost,
    "sluice.degraded": degraded,
  };
}

/** The wall clock, with the steady clock's fractions. */
function epochMs(): number {
  const nowMs = performance.now();
  const offsetMs = Date.now() - nowMs;
  // The wall clock has whole milliseconds; only a step of it is adopted.
  if (Math.abs(offsetMs - wallOffsetMs) > 2) wallOffsetMs = offsetMs;
  return nowMs + wallOffsetMs;
}

let wallOffsetMs = 0;

function perSecondBudget(most: number): () => boolean {
  let beganMs = -Infinity;
  let used = 0;
  return () => {
    const nowMs = performance.now();
    if (nowMs - beganMs >= 1_000) {
      beganMs = nowMs;
      used = 0;
    }
    used += 1;
    return used <= most;
  };
}
