import type { ServerWritableStream } from "@grpc/grpc-js";
import {
  type HealthCheckRequest,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "@sluice/protocol/health";
import { healthNames, statusOf } from "../health.ts";
import type { GrpcContext, StreamCodec } from "../method.ts";

/** Tells the status, and every change of it, within a second. When the server stops it says so, and ends. */
export function healthWatch(
  { service }: HealthCheckRequest,
  stream: ServerWritableStream<Uint8Array, Uint8Array>,
  codec: StreamCodec<HealthCheckRequest, HealthCheckResponse>,
  context: GrpcContext,
): void {
  const isKnown = healthNames.includes(service);
  let told: ServingStatus | undefined;

  function tell(serving: boolean): void {
    const health = isKnown ? statusOf(serving) : ServingStatus.SERVICE_UNKNOWN;
    if (health === told) return;
    told = health;
    stream.write(codec.write({ status: health }));
  }

  function stop(): void {
    unwatch();
    context.draining.removeEventListener("abort", end);
  }

  function end(): void {
    stop();
    tell(false);
    stream.end();
  }

  const unwatch = context.health.watch(tell);
  stream.on("cancelled", stop);
  stream.on("close", stop);
  context.draining.addEventListener("abort", end, { once: true });
  if (context.draining.aborted) end();
}
