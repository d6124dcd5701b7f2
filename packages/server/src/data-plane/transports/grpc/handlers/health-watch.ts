import {
  type HealthCheckRequest,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "@sluice/protocol/health";
import { type Health, servingStatus } from "../health.ts";
import type { AnswerStream, GrpcContext, StreamCodec } from "../method.ts";

/** Sends the status, and every change of it, within a second. When the server stops it says so, and ends. */
export function healthWatch(
  { service }: HealthCheckRequest,
  stream: AnswerStream,
  codec: StreamCodec<HealthCheckRequest, HealthCheckResponse>,
  context: GrpcContext,
): void {
  let sent: ServingStatus | undefined;

  function report(health: Health): void {
    const status = servingStatus(service, health) ?? ServingStatus.SERVICE_UNKNOWN;
    if (status === sent) return;
    sent = status;
    stream.write(codec.write({ status }));
  }

  function stop(): void {
    unwatch();
    context.draining.removeEventListener("abort", end);
  }

  function end(): void {
    stop();
    report("stopping");
    stream.end();
  }

  const unwatch = context.health.watch(report);
  stream.onOver(stop);
  context.draining.addEventListener("abort", end, { once: true });
  if (context.draining.aborted) end();
}
