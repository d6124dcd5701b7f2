import type { Turns } from "../../turns.ts";
import type { HeldConnection } from "../call-bytes.ts";
import type { GrpcContext } from "../method.ts";

/** What a call needs of its connection. */
export interface CallHost {
  readonly context: GrpcContext;
  readonly held: HeldConnection;
  readonly turns: Turns;
  readonly remoteAddress: string | undefined;
  /** The time of the frames that are being read. */
  readonly heardMs: number;
  /** How long a message may be half received. */
  readonly messageWithinMs: number;
  /** Whether few enough answers are unsent that another call may be answered. */
  readonly hasRoom: boolean;
  /** Counts bytes that are held, or no longer if below 0. Returns false if the connection now holds more than it may. */
  hold(bytes: number): boolean;
  /** A call was answered. */
  answered(): void;
}
