import type { Problem } from "sluice";

/** How this server stands with the policy store. */
export interface StoreReport {
  readonly kind: "postgres" | "sqlite";
  /** Without user and password. */
  readonly at: string;
  /**
   * `current`: it decides by the store's newest generation. `stale`: that cannot be applied. `away`: the store is
   * unavailable, and the last good policies decide. `expired`: the same, for longer than the grace period.
   */
  readonly state: "current" | "stale" | "away" | "expired";
  readonly reason: string | undefined;
  readonly awaySinceMs: number | undefined;
  /** The generation in force, and the newest known one. */
  readonly generation: number;
  readonly newest: number;
  readonly source: "store" | "snapshot" | "topic";
  readonly takenUpAtMs: number;
  readonly digest: string;
  /** How changes are announced, and whether they are now. */
  readonly push: {
    readonly kind: "postgres" | "redis" | "kafka" | "process" | "none";
    readonly connected: boolean;
    /** The newest complete generation in the Kafka topic; undefined without a topic, or if it has none. */
    readonly topicGeneration: number | undefined;
  };
  /** The kill switch as it is obeyed now. */
  readonly killSwitch: KillSwitchReport | undefined;
  /** Policies that are disabled now, and how many subjects are blocked. */
  readonly disabled: readonly DisabledReport[];
  readonly blocked: number;
  /** What is left out of the store's policies, because it cannot be used. */
  readonly problems: readonly Problem[];
  /** What files and store both define, and which of them wins. */
  readonly overridden: readonly string[];
  readonly precedence: "files" | "store";
  /** This process among the nodes. */
  readonly node: { readonly id: string; readonly name: string };
}

export interface DisabledReport {
  readonly policy: string;
  readonly mode: "allow" | "shadow";
  readonly untilMs: number;
  readonly reason: string;
}

export interface KillSwitchReport {
  readonly mode: "open" | "closed";
  readonly untilMs: number;
  readonly reason: string;
  readonly author: string;
}

/** Why a server is not simply ready; undefined if nothing is wrong. */
export function renderStoreTrouble({ state, reason, generation, newest }: StoreReport): string | undefined {
  switch (state) {
    case "current":
      return undefined;
    case "stale":
      return `generation ${newest} of the policy store cannot be applied, so ${generation} decides (${reason})`;
    case "away":
      return `the policy store cannot be reached, so its generation ${generation} decides (${reason})`;
    case "expired":
      return `the policy store has been unreachable for longer than its grace period; its generation ${generation} decides (${reason})`;
  }
}
