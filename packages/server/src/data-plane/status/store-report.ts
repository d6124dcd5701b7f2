import type { Problem } from "sluice";

/** How this server stands to the policy store. */
export interface StoreReport {
  readonly kind: "postgres" | "sqlite";
  /** Without user and password. */
  readonly at: string;
  /**
   * `current`: decides by what the store has. `stale`: its newest generation cannot be taken up. `away`: it cannot be asked, and
   * the last good policies decide. `expired`: the same, for longer than the grace.
   */
  readonly state: "current" | "stale" | "away" | "expired";
  readonly reason: string | undefined;
  readonly awaySinceMs: number | undefined;
  /** What is decided by, and the newest that is known of. */
  readonly generation: number;
  readonly newest: number;
  readonly source: "store" | "snapshot";
  readonly takenUpAtMs: number;
  readonly digest: string;
  /** How changes are heard of, and whether they are now. */
  readonly push: { readonly kind: "postgres" | "redis" | "process" | "none"; readonly connected: boolean };
  /** As it is obeyed now. */
  readonly killSwitch: KillSwitchReport | undefined;
  /** What of the store is left out, because it cannot be used. */
  readonly problems: readonly Problem[];
  /** What files and store both have, and which of them wins. */
  readonly overridden: readonly string[];
  readonly precedence: "files" | "store";
  /** This process among nodes. */
  readonly node: { readonly id: string; readonly name: string };
}

export interface KillSwitchReport {
  readonly mode: "open" | "closed";
  readonly untilMs: number;
  readonly reason: string;
  readonly author: string;
}

/** Why a server is not simply ready; undefined where nothing is wrong. */
export function renderStoreTrouble({ state, reason, generation, newest }: StoreReport): string | undefined {
  switch (state) {
    case "current":
      return undefined;
    case "stale":
      return `generation ${newest} of the policy store cannot be taken up, so ${generation} decides (${reason})`;
    case "away":
      return `the policy store cannot be reached, so its generation ${generation} decides (${reason})`;
    case "expired":
      return `the policy store has been out of reach for longer than its grace; its generation ${generation} decides (${reason})`;
  }
}
