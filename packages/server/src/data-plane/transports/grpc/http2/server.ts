import type { Socket } from "node:net";
import { CallBytes } from "../call-bytes.ts";
import type { Engine, EngineOptions } from "../engine.ts";
import { MethodRunner } from "../method-runner.ts";
import { Connection } from "./connection.ts";
import { defaultLimits } from "./connection-limits.ts";
import { type ClosedFor, GrpcConnection, type GrpcConnections } from "./grpc-connection.ts";

const logEveryMs = 60_000;

const reasons: Readonly<Record<ClosedFor, string>> = {
  held_bytes: "too many bytes",
  too_many_calls: "too many calls without an identified caller",
  flood: "too many frames that are no calls",
};

/** gRPC over the method table, on an HTTP/2 of our own. */
export function createHttp2Engine({ methods, context, limits, turns }: EngineOptions): Engine {
  const connections = new Set<Connection>();
  const runners = methods.map((method) => [method.definition.path, new MethodRunner(method, context)] as const);
  let loggedMs = -Infinity;
  let leaving = false;

  const shared: GrpcConnections = {
    context,
    runners: new Map(runners),
    limits,
    held: new CallBytes(limits.held, turns),
    turns,
    onClosedFor(why, { held: { bytes, calls, known }, remoteAddress: address }): void {
      context.metrics.countTurnedAway("grpc", why);
      const nowMs = performance.now();
      if (nowMs - loggedMs < logEveryMs) return;
      loggedMs = nowMs;
      context.log.warn("connection.closed_for_share", { why: reasons[why], bytes, calls, known, address });
    },
    onClosed(connection): void {
      connections.delete(connection);
    },
  };

  /** Connections that have written something outside of their own reading, as answers of remote counters. */
  let written: Connection[] = [];

  function flushLater(connection: Connection): void {
    if (written.length === 0) setImmediate(flushWritten);
    written.push(connection);
  }

  function flushWritten(): void {
    const flushed = written;
    written = [];
    for (const connection of flushed) connection.flush();
  }

  const { silentMs, replyMs, maxAgeMs, helloWithinMs, messageWithinMs, unreadMs } = limits;
  const connectionLimits = { ...defaultLimits, silentMs, replyMs, helloWithinMs, unreadMs };
  const shortestMs = Math.min(silentMs, replyMs, helloWithinMs, messageWithinMs, unreadMs, maxAgeMs);
  const clock = setInterval(
    () => {
      const nowMs = performance.now();
      for (const connection of [...connections]) connection.tick(nowMs);
    },
    Math.min(Math.max(shortestMs / 6, 10), 1_000),
  ).unref();

  return {
    accept(socket: Socket): void {
      const connection = new Connection({
        socket,
        limits: { ...connectionLimits, maxAgeMs: spread(maxAgeMs) },
        turns,
        createHost: (created) => new GrpcConnection(created, shared),
        flushLater,
      });
      connections.add(connection);
      if (leaving) connection.leave();
    },
    leave(): void {
      leaving = true;
      for (const connection of connections) connection.leave();
    },
    close(): void {
      clearInterval(clock);
    },
  };
}

/** Up to a tenth more or less, so that connections of the same age do not leave together. */
function spread(ageMs: number): number {
  return ageMs * (0.9 + Math.random() * 0.2);
}
