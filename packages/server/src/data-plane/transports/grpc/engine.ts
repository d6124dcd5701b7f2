import type { Socket } from "node:net";
import type { Turns } from "../turns.ts";
import type { CallBytesLimits } from "./call-bytes.ts";
import type { GrpcContext, Method } from "./method.ts";

/** What carries calls: HTTP/2 and gRPC on connections that a door has accepted. */
export interface Engine {
  /** Takes over a connection. */
  accept(socket: Socket): void;
  /** Asks every client to go elsewhere. Calls that were made are answered, and connections closed after their last call. */
  leave(): void;
  /** Lets go of everything, after the last connection was closed. */
  close(): void;
}

export interface EngineLimits {
  readonly maxMessageBytes: number;
  /** How long a message may be half received; then its call ends. */
  readonly messageWithinMs: number;
  /** How long a connection may be silent before it is asked whether it is there, and how long it may take to say so. */
  readonly silentMs: number;
  readonly replyMs: number;
  /** How old a connection may become before its client is asked to open another. `Infinity`: any age. */
  readonly maxAgeMs: number;
  /** How long the first frames of a client may take. */
  readonly helloWithinMs: number;
  /** How long a client may take nothing of an answer that waits for it. */
  readonly unreadMs: number;
  readonly held: CallBytesLimits;
}

export interface EngineOptions {
  readonly methods: readonly Method[];
  readonly context: GrpcContext;
  readonly limits: EngineLimits;
  /** Shared with other transports. */
  readonly turns: Turns;
}
