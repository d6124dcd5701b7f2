import type { KillSwitchRecord, Pulse } from "@sluice/sql";
import type { ObeyedKillSwitch } from "./obey-kill-switch.ts";

/** How a view of the store was asked for. */
export interface ViewAsked {
  /** When, by the steady clock; undefined for what was kept on disk. */
  readonly askedMs: number | undefined;
  /** Whether an older generation is believed. */
  readonly goneBack?: boolean;
}

/**
 * The kill switch of the newest view of the store. Views may arrive in another order than they were asked for in, and the switch
 * goes back no more than policies do:
 *
 *     heard with generation g ──view of g or later──► obeyed, and heard with that one
 *                             ──view before g───────► ignored, unless the store itself has gone back
 */
export class HeardKillSwitch {
  readonly #obeyed: ObeyedKillSwitch;
  readonly #steadyMs: () => number;
  /** Which generation the switch was heard with, and when the store was asked for it. */
  #last: { readonly generation: number; readonly askedMs: number | undefined } | undefined;

  constructor(obeyed: ObeyedKillSwitch, steadyMs: () => number) {
    this.#obeyed = obeyed;
    this.#steadyMs = steadyMs;
  }

  /** 0 before any was heard of. */
  get generation(): number {
    return this.#last?.generation ?? 0;
  }

  /** The switch as it was heard of last, also when it has ended. */
  get record(): KillSwitchRecord | undefined {
    return this.#obeyed.heard;
  }

  hear({ generation, killSwitch }: Pulse, { askedMs, goneBack = false }: ViewAsked): void {
    if (this.#last !== undefined && generation < this.#last.generation && !goneBack) return;
    const seenMs = goneBack ? undefined : this.#last?.askedMs;
    this.#obeyed.hear(killSwitch, seenMs === undefined ? undefined : this.#steadyMs() - seenMs);
    this.#last = { generation, askedMs };
  }
}
