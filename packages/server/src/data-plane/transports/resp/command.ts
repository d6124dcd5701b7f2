import type { Permission } from "../../access/roles.ts";
import type { Service } from "../../service/service.ts";
import type { Arguments } from "./arguments.ts";
import type { Session } from "./session.ts";
import type { ThrottleLimits } from "./throttle-limits.ts";

/** What a command runs with. */
export interface CommandContext {
  readonly service: Service;
  readonly session: Session;
  readonly throttleLimits: ThrottleLimits;
  readonly totals: RespTotals;
  /** Counts the checks asked over this protocol. */
  readonly checks: { count: number };
  /** Every command there is. */
  readonly commands: readonly Command[];
}

/** What INFO shows of this port. */
export interface RespTotals {
  readonly uptimeMs: () => number;
  readonly connections: () => number;
  /** Since the start. */
  readonly connectionsTotal: () => number;
  readonly commandsTotal: () => number;
}

/** One command, as in the table. */
export interface Command {
  /** In lower case. */
  readonly name: string;
  readonly summary: string;
  /** Number of words, including the name; below 0: at least this many. */
  readonly arity: number;
  readonly needs: Permission | "nothing";
  /** Whether clients may send it before they have authenticated. */
  readonly beforeAuth?: true;
  /** Whether the first argument is a key, by which cluster clients choose a server. */
  readonly hasKey?: true;
  /** The reply as it is sent; synchronous if possible. May throw or reject. */
  readonly run: (args: Arguments, context: CommandContext) => string | Promise<string>;
}
