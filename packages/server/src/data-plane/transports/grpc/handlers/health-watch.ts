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

  function end(): void {
    report("stopping");
    stream.end();
  }

  stream.onOver(context.health.watch(report));
  stream.onOver(context.draining.onBegin(end));
}
