import { type Protocol, protocols } from "../../protocol.ts";
import { type Buckets, createBuckets, durationBounds, histogramSamples, observe } from "./buckets.ts";
import type { Family, Sample } from "./exposition.ts";
import { type Count, Tally, tallied } from "./tally.ts";

const httpMethods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Requests over the transports, and how long they take. */
export class RequestMetrics {
  readonly families: readonly Family[];
  readonly #http = new Tally(3);
  readonly #grpc = new Tally(2);
  readonly #resp = new Tally(2);
  readonly #checks = new Tally(1);
  readonly #turnedAway = new Tally(2);
  readonly #durations: Readonly<Record<Protocol, Buckets>> = {
    http: createBuckets(durationBounds),
    grpc: createBuckets(durationBounds),
    resp: createBuckets(durationBounds),
    admin: createBuckets(durationBounds),
  };

  constructor(connections: (() => Readonly<Record<Protocol, number>>) | undefined) {
    this.families = this.#createFamilies(connections);
  }

  countHttp(method: string, route: string, status: number, seconds?: number): void {
    this.#http.at(httpMethods.has(method) ? method : "other", route, String(status)).count += 1;
    if (seconds !== undefined) observe(this.#durations.http, seconds);
  }

  countGrpc(method: string, code: string, seconds?: number): void {
    this.#grpc.at(method, code).count += 1;
    if (seconds !== undefined) observe(this.#durations.grpc, seconds);
  }

  countResp(command: string, outcome: string, seconds?: number): void {
    this.#resp.at(command, outcome).count += 1;
    if (seconds !== undefined) observe(this.#durations.resp, seconds);
  }

  countTurnedAway(protocol: Protocol, reason: string): void {
    this.#turnedAway.at(protocol, reason).count += 1;
  }

  /** Connections turned away so far. */
  turnedAway(protocol: Protocol): number {
    return this.#turnedAway.sum(protocol);
  }

  checkCount(protocol: Protocol): Count {
    return this.#checks.at(protocol);
  }

  #createFamilies(connections: (() => Readonly<Record<Protocol, number>>) | undefined): readonly Family[] {
    const durations = this.#durations;
    const families: Family[] = [
      tallied("sluice_protocol_checks_total", "Checks asked, by protocol.", ["protocol"], this.#checks),
      tallied("sluice_http_requests_total", "HTTP requests answered.", ["method", "route", "status"], this.#http),
      tallied(
        "sluice_grpc_calls_total",
        "gRPC calls answered, by method and status code.",
        ["method", "code"],
        this.#grpc,
      ),
      tallied(
        "sluice_resp_commands_total",
        "Commands of Redis clients answered, by name and outcome.",
        ["command", "outcome"],
        this.#resp,
      ),
      {
        name: "sluice_request_duration_seconds",
        help: "How long requests took from when they were read until their answer was handed over, by protocol.",
        type: "histogram",
        labels: ["protocol"],
        *samples(): Generator<Sample> {
          for (const protocol of protocols) {
            const buckets = durations[protocol];
            if (buckets.counts.some((count) => count > 0)) yield* histogramSamples(buckets, [protocol]);
          }
        },
      },
      tallied(
        "sluice_connections_turned_away_total",
        "Connections turned away, by protocol and reason: too many open, no TLS, or a client that is not let in.",
        ["protocol", "reason"],
        this.#turnedAway,
      ),
    ];
    if (connections !== undefined)
      families.push({
        name: "sluice_connections",
        help: "Connections open now, by protocol.",
        type: "gauge",
        labels: ["protocol"],
        samples: () => protocols.map((protocol) => ({ labels: [protocol], value: connections()[protocol] })),
      });
    return families;
  }
}
