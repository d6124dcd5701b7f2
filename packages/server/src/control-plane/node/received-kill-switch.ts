import type { KillSwitchRecord, Pulse } from "@sluice/sql";
import type { KillSwitchFollower } from "./kill-switch-follower.ts";

/** A request for a view of the store. */
export interface ViewRequest {
  /** When it was made, by the monotonic clock; undefined for the file on disk. */
  readonly askedMs: number | undefined;
  /** Whether to believe an older generation. */
  readonly goneBack?: boolean;
}

/**
 * The kill switch of the newest view of the store. Views may arrive out of order, and like policies the switch never
 * goes back to an older one:
 *
 *     received with generation g ──view of g or later──► obeyed, and received with that one
 *                                ──view before g───────► ignored, unless the store itself has gone back
 */
export class ReceivedKillSwitch {
  readonly #obeyed: KillSwitchFollower;
  readonly #steadyMs: () => number;
  /** The generation that the switch came with, and when the store was asked for it. */
  #last: { readonly generation: number; readonly askedMs: number | undefined } | undefined;

  constructor(obeyed: KillSwitchFollower, steadyMs: () => number) {
    this.#obeyed = obeyed;
    this.#steadyMs = steadyMs;
  }

  /** 0 before any was received. */
  get generation(): number {
    return this.#last?.generation ?? 0;
  }

  /** The switch as last received, even when it has ended. */
  get record(): KillSwitchRecord | undefined {
    return this.#obeyed.received;
  }

  receive({ generation, killSwitch }: Pulse, { askedMs, goneBack = false }: ViewRequest): void {
    if (this.#last !== undefined && generation < this.#last.generation && !goneBack) return;
    const seenMs = goneBack ? undefined : this.#last?.askedMs;
    this.#obeyed.receive(killSwitch, seenMs === undefined ? undefined : this.#steadyMs() - seenMs);
    this.#last = { generation, askedMs };
  }
}
