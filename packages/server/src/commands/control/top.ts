import type { HotKeysBody } from "@sluice/protocol/admin";
import { type HotKeyOrder, hotKeyOrders } from "@sluice/protocol/http";
import { printable } from "sluice";
import type { Signals } from "../../boot/early-signals.ts";
import { mostHotKeys, usualHotKeys } from "../../observe/hot-keys/merge-hot-keys.ts";
import { CommandError, type ExitCode } from "../terminal.ts";
import type { ControlOptions, ControlSession } from "./control-session.ts";
import { openLiveScreen } from "./live-screen.ts";
import { parseWhile } from "./parse-time.ts";
import { parseCount } from "./parse-version.ts";
import { renderHotKeys } from "./render-hot-keys.ts";
import { writeJson } from "./write-json.ts";

export interface TopOptions extends ControlOptions {
  readonly by?: string;
  readonly count?: string;
  readonly every?: string;
  readonly node?: string;
  readonly server?: string;
  /** One table, also in a terminal. */
  readonly once?: boolean;
}

/** Asks whoever is to be asked: a control plane of all its nodes, or a server of itself. */
export type AskHotKeys = (query: { readonly by: HotKeyOrder; readonly count: number }) => Promise<HotKeysBody>;

/** What `sluice top` needs of a session. */
export interface TopSession extends Pick<ControlSession, "terminal" | "json" | "paint"> {
  readonly signals: Signals;
  /** Whether the screen can be drawn over: a terminal, and not a dumb one. */
  readonly live: boolean;
}

interface LiveWish {
  readonly by: HotKeyOrder;
  readonly count: number;
  readonly everyMs: number;
}

const leastEveryMs = 200;
const mostEveryMs = 60_000;

/** `sluice top`: which counters are asked for most; live in a terminal, else once. */
export async function showTop(options: TopOptions, ask: AskHotKeys, session: TopSession): Promise<ExitCode> {
  const { terminal, json, live, paint } = session;
  const by = readOrder(options.by);
  const count = options.count === undefined ? usualHotKeys : parseCount("--count", options.count, mostHotKeys);
  if (options.once === true && options.every !== undefined)
    throw new CommandError("--every says how often to refresh, and --once prints one table; leave one of them out");
  const everyMs = readEvery(options.every);
  // What is wrong from the start is told without a screen.
  const first = await ask({ by, count });
  if (json) writeJson(session, first);
  else if (live && options.once !== true) await showLive(first, { by, count, everyMs }, ask, session);
  else terminal.stdout.write(renderHotKeys(first, widthOf(terminal), paint));
  return 0;
}

const keysOf: Readonly<Record<string, HotKeyOrder>> = { r: "rate", d: "denials" };

/** Draws until it is told to stop. A server that does not answer for a while is asked on. */
async function showLive(first: HotKeysBody, wish: LiveWish, ask: AskHotKeys, session: TopSession): Promise<void> {
  const { terminal, paint, signals } = session;
  let { by } = wish;
  let asked = by;
  let shown = first;
  let trouble = "";
  const screen = openLiveScreen(terminal, signals, (key) => {
    by = keysOf[key.toLowerCase()] ?? by;
  });
  try {
    for (;;) {
      const hint = paint.faint(`by ${by}; r: by rate, d: by denials, q: quit${trouble}`);
      screen.draw(`${hint}\n${renderHotKeys(shown, widthOf(terminal), paint)}`);
      // Another order is not waited for, also where it was wished for while an answer was.
      if (by === asked) await screen.wait(wish.everyMs);
      if (screen.isEnded) break;
      asked = by;
      const answer = await Promise.race([screen.ended, ask({ by, count: wish.count }).catch(asTrouble)]);
      if (typeof answer === "string") trouble = ` (${answer})`;
      else if (answer !== undefined) {
        shown = answer;
        trouble = "";
      }
    }
  } finally {
    screen.close();
  }
}

/** Without a token, or without the role, there is no use in asking on. */
function asTrouble(error: unknown): string {
  if (!(error instanceof CommandError) || error.exitCode === 3) throw error;
  return printable(error.message);
}

function widthOf({ stdout }: TopSession["terminal"]): number | undefined {
  return stdout.isTTY === true ? stdout.columns : undefined;
}

function readOrder(text: string = "rate"): HotKeyOrder {
  const order = hotKeyOrders.find((one) => one === text);
  if (order !== undefined) return order;
  throw new CommandError(`--by is ${JSON.stringify(text)}; it should be ${hotKeyOrders.join(" or ")}`);
}

function readEvery(text: string = "1s"): number {
  const everyMs = parseWhile("--every", text);
  if (everyMs >= leastEveryMs && everyMs <= mostEveryMs) return everyMs;
  throw new CommandError(`--every is ${JSON.stringify(text)}; it should be a duration from 200ms to 1m`);
}
