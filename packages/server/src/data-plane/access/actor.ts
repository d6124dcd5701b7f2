import type { Caller } from "./access.ts";

/** A caller, and where it calls from. */
export interface Actor {
  readonly caller: Caller;
  /** The peer's address; empty for a unix socket. */
  readonly from: string;
}
