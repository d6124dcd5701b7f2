import type { Socket } from "node:net";
import { limitOwnApi } from "../../access/limit-own-api.ts";
import { countChecks } from "../../service/count-checks.ts";
import type { Service } from "../../service/service.ts";
import type { Transport } from "../transport.ts";
import { Turns } from "../turns.ts";
import type { CallBytesLimits } from "./call-bytes.ts";
import { Draining } from "./draining.ts";
import type { Engine, EngineLimits, EngineOptions } from "./engine.ts";
import { createGrpcJsEngine } from "./grpc-js/server.ts";
import { createHealthFeed } from "./health.ts";
import { createHttp2Engine } from "./http2/server.ts";
import type { GrpcContext, Method } from "./method.ts";
import { nativeMethods } from "./methods.ts";
import { StreamShares } from "./stream-shares.ts";

/** Most bytes of a message; a batch of 1 000 checks is well below. */
export const maxMessageBytes: number = 1024 * 1024;

const mebibyte = 1024 * 1024;

/** What clients may make this process hold. */
const heldLimits: CallBytesLimits = {
  perConnection: 64 * mebibyte,
  unknownCallers: 32 * mebibyte,
  knownCallers: 256 * mebibyte,
};

/** `sluice`: HTTP/2 of our own. `grpc-js`: Node's, and grpc-js on it. */
export const grpcEngines = ["sluice", "grpc-js"] as const;
export type GrpcEngine = (typeof grpcEngines)[number];

const engines: Readonly<Record<GrpcEngine, (options: EngineOptions) => Engine>> = {
  sluice: createHttp2Engine,
  "grpc-js": createGrpcJsEngine,
};

export interface GrpcServerOptions extends Partial<EngineLimits> {
  /** Absent: `nativeMethods`. */
  readonly methods?: readonly Method[] | undefined;
  /** Absent: `sluice`. */
  readonly engine?: GrpcEngine | undefined;
  /** Absent: not shared with other transports. */
  readonly turns?: Turns | undefined;
}

const usualLimits: EngineLimits = {
  maxMessageBytes,
  messageWithinMs: 30_000,
  silentMs: 60_000,
  replyMs: 20_000,
  maxAgeMs: Number.POSITIVE_INFINITY,
  helloWithinMs: 10_000,
  unreadMs: 60_000,
  held: heldLimits,
};

/** gRPC over the method table. An engine carries calls; handlers know of messages. */
export function createGrpcServer(
  service: Service & Pick<GrpcContext, "envoyHeaders" | "idempotencyHeader"> & Partial<Pick<GrpcContext, "ownLimits">>,
  options: GrpcServerOptions = {},
): Transport {
  const draining = new Draining();
  const context: GrpcContext = {
    ...service,
    decide: countChecks(service.decide, service.metrics.checkCount("grpc")),
    draining,
    shares: new StreamShares(),
    health: createHealthFeed({ ...service, draining }),
    ownLimits: service.ownLimits ?? limitOwnApi(),
  };
  const { methods = nativeMethods, engine: name = "sluice", turns = new Turns(), ...limits } = options;
  const engine = engines[name]({ methods, context, limits: { ...usualLimits, ...limits }, turns });
  const open = new Set<Socket>();
  let whenGone: (() => void) | undefined;

  return {
    accept(socket: Socket): void {
      open.add(socket);
      socket.once("close", () => {
        open.delete(socket);
        if (open.size === 0) whenGone?.();
      });
      engine.accept(socket);
    },

    async drain(withinMs: number): Promise<number> {
      const gone = new Promise<void>((resolve) => {
        whenGone = resolve;
        if (open.size === 0) resolve();
      });
      engine.leave();
      draining.begin();
      let cut = 0;
      const bound = setTimeout(() => {
        cut = open.size;
        engine.close();
        for (const socket of open) socket.destroy();
      }, withinMs);
      await gone;
      clearTimeout(bound);
      engine.close();
      return cut;
    },
  };
}
