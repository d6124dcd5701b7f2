import type { DisabledRecord } from "@sluice/sql";
import type { Actor } from "../data-plane/access/actor.ts";
import type { Changed, ChangeOptions } from "./change.ts";

/** A policy that does not limit for a while. */
export type DisabledView = DisabledRecord;

export interface DisableOptions extends ChangeOptions {
  /** Absent: `allow`. */
  readonly mode?: DisabledView["mode"] | undefined;
  /** From the moment of the change, from a second to a week. Absent: an hour. */
  readonly forMs?: number | undefined;
  /** In place of `forMs`. */
  readonly untilMs?: number | undefined;
}

/** Disabling single policies for a time: of the store, of files, and the default policy. */
export interface DisablingControl {
  /** Those that have not ended, by policy. */
  list(actor: Actor): Promise<readonly DisabledView[]>;
  /** `why` is required. Replaces an earlier one. */
  disable(actor: Actor, policy: string, options: DisableOptions): Promise<Changed<DisabledView | undefined>>;
  /** The policy limits again. */
  enable(actor: Actor, policy: string, options?: ChangeOptions): Promise<Changed<DisabledView | undefined>>;
}
