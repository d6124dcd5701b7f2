import type { Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import type { Service } from "../../service/service.ts";
import { HeldBytes } from "../held-bytes.ts";
import type { Transport } from "../transport.ts";
import { Turns } from "../turns.ts";
import { commands } from "./commands.ts";
import { Connection, type ConnectionBounds, type ConnectionShared } from "./connection.ts";
import { createDispatch } from "./dispatch.ts";
import { Session } from "./session.ts";
import { createThrottleLimits, throttleName } from "./throttle-limits.ts";

const keepAliveMs = 300_000;
const usualBounds: ConnectionBounds = {
  maxInFlight: 1_000,
  unreadMs: 30_000,
  halfwayMs: 30_000,
  strangerMs: 30_000,
  lingerMs: 2_000,
};

/** The protocol of Redis, versions 2 and 3, over the table of commands. */
export function createRespServer(
  service: Service,
  options: Partial<ConnectionBounds & ConnectionShared> = {},
): Transport {
  const { turns = new Turns(), held = new HeldBytes(), ...given } = options;
  const bounds: ConnectionBounds = { ...usualBounds, ...given };
  const { unreadMs, halfwayMs, strangerMs, lingerMs } = bounds;
  const lookEveryMs = Math.min(1_000, Math.min(unreadMs, halfwayMs, strangerMs, lingerMs) / 4);
  const dispatch = createDispatch(commands, service);
  const throttleLimits = createThrottleLimits();
  const checks = service.metrics.checkCount("resp");
  service.metrics.labelLimits([throttleName]);
  const connections = new Set<Connection>();
  const startedMs = performance.now();
  let accepted = 0;
  let draining = false;
  let whenGone: (() => void) | undefined;
  let looking: NodeJS.Timeout | undefined;
  const totals = {
    uptimeMs: () => performance.now() - startedMs,
    connections: () => connections.size,
    connectionsTotal: () => accepted,
    commandsTotal: () => dispatch.total,
  };

  /** One timer for all of them, while there are any. */
  function look(): void {
    const nowMs = performance.now();
    for (const connection of connections) connection.closeIfStuck(nowMs);
  }

  function leave(connection: Connection): void {
    connections.delete(connection);
    if (connections.size > 0) return;
    clearInterval(looking);
    looking = undefined;
    whenGone?.();
  }

  return {
    accept(socket: Socket): void {
      if (draining) {
        socket.destroy();
        return;
      }
      accepted += 1;
      socket.setKeepAlive(true, keepAliveMs);
      const session = new Session(accepted, renderAddress(socket), service.access, performance.now());
      const context = { service, session, throttleLimits, totals, checks, commands };
      const connection = new Connection(socket, context, dispatch, bounds, { turns, held });
      connections.add(connection);
      looking ??= setInterval(look, lookEveryMs).unref();
      socket.once("close", () => leave(connection));
    },
    async drain(withinMs: number): Promise<number> {
      draining = true;
      // Commands in their way through the event loop have been received as well.
      await turn();
      await turn();
      for (const connection of connections) connection.drain();
      let cut = 0;
      const bound = setTimeout(() => {
        for (const connection of connections) {
          if (!connection.isAnswered) cut += 1;
          connection.destroy();
        }
      }, withinMs);
      await new Promise<void>((resolve) => {
        whenGone = resolve;
        if (connections.size === 0) resolve();
      });
      clearTimeout(bound);
      return cut;
    },
  };
}

function renderAddress({ remoteAddress, remotePort, remoteFamily }: Socket): string {
  if (remoteAddress === undefined) return "";
  return `${remoteFamily === "IPv6" ? `[${remoteAddress}]` : remoteAddress}:${remotePort}`;
}
