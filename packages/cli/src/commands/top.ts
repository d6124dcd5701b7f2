import type { HotKeysBody } from "@sluice/protocol/admin";
import { type HotKeyOrder, hotKeyOrders, mostHotKeys, usualHotKeys } from "@sluice/protocol/http";
import { type Command, Option } from "commander";
import { printable } from "sluice/internal";
import type { Environment } from "../arguments/find-token.ts";
import { parseDurationFlag } from "../arguments/parse-time.ts";
import { parseCount } from "../arguments/parse-version.ts";
import { controlCommand, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { openControlSession } from "../control/control-session.ts";
import type { Signals } from "../early-signals.ts";
import { askServer, findServer } from "../server/ask-server.ts";
import { openLiveScreen } from "../terminal/live-screen.ts";
import { paintFor } from "../terminal/paint.ts";
import { CommandError, type ExitCode, type Terminal } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";
import { renderHotKeys } from "./render-hot-keys.ts";

export interface TopOptions extends ControlOptions {
  readonly by?: string;
  readonly count?: string;
  readonly every?: string;
  readonly node?: string;
  readonly server?: string;
  /** One table, also in a terminal. */
  readonly once?: boolean;
}

/** Asks a control plane about all its nodes, or a server about itself. */
export type AskHotKeys = (query: { readonly by: HotKeyOrder; readonly count: number }) => Promise<HotKeysBody>;

/** What `sluice top` needs of a session. */
export interface TopSession extends Pick<ControlSession, "terminal" | "json" | "paint"> {
  readonly signals: Signals;
  /** Whether the screen can be drawn over: a terminal, and not a dumb one. */
  readonly live: boolean;
}

interface LiveOptions {
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
  // An error at the start is printed without taking over the screen.
  const first = await ask({ by, count });
  if (json) writeJson(session, first);
  else if (live && options.once !== true) await showLive(first, { by, count, everyMs }, ask, session);
  else terminal.stdout.write(renderHotKeys(first, findWidth(terminal), paint));
  return 0;
}

const ordersByKey: Readonly<Record<string, HotKeyOrder>> = { r: "rate", d: "denials" };

/** Draws until it is stopped, and keeps asking a server that does not answer for a while. */
async function showLive(first: HotKeysBody, request: LiveOptions, ask: AskHotKeys, session: TopSession): Promise<void> {
  const { terminal, paint, signals } = session;
  let { by } = request;
  let asked = by;
  let shown = first;
  let trouble = "";
  const screen = openLiveScreen(terminal, signals, (key) => {
    by = ordersByKey[key.toLowerCase()] ?? by;
  });
  try {
    for (;;) {
      const hint = paint.faint(`by ${by}; r: by rate, d: by denials, q: quit${trouble}`);
      screen.draw(`${hint}\n${renderHotKeys(shown, findWidth(terminal), paint)}`);
      // Another order is not waited for, also where it was wished for while an answer was.
      if (by === asked) await screen.wait(request.everyMs);
      if (screen.isEnded) break;
      asked = by;
      const answer = await Promise.race([screen.ended, ask({ by, count: request.count }).catch(asTrouble)]);
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

function findWidth({ stdout }: TopSession["terminal"]): number | undefined {
  return stdout.isTTY === true ? stdout.columns : undefined;
}

function readOrder(text: string = "rate"): HotKeyOrder {
  const order = hotKeyOrders.find((one) => one === text);
  if (order !== undefined) return order;
  throw new CommandError(`--by is ${JSON.stringify(text)}; it should be ${hotKeyOrders.join(" or ")}`);
}

function readEvery(text: string = "1s"): number {
  const everyMs = parseDurationFlag("--every", text);
  if (everyMs >= leastEveryMs && everyMs <= mostEveryMs) return everyMs;
  throw new CommandError(`--every is ${JSON.stringify(text)}; it should be a duration from 200ms to 1m`);
}

export interface TopWorld {
  readonly env: Environment;
  readonly terminal: Terminal;
  readonly signals: Signals;
}

/** `sluice top` */
export function addTopCommand(program: Command, world: TopWorld, finish: (code: ExitCode) => void): void {
  const { env, terminal, signals } = world;
  withExamples(
    controlCommand(program, "top", "Show the hottest counters, by decisions or by denials, live in a terminal.")
      .option("--by <order>", "rate: by decisions a second; denials: by denials a second", "rate")
      .option("--count <number>", "how many, at most 100", "20")
      .option("--every <duration>", "how often to refresh in a terminal, 200ms to 1m (default 1s)")
      .option("--once", "print one table and exit (default when not in a terminal)")
      .option("--node <node>", "only the counters of this node, by its id or name")
      .addOption(
        new Option(
          "--server <url>",
          "ask this server for its own counters, such as http://127.0.0.1:8080; needs no control plane",
        ).conflicts(["admin", "node"]),
      ),
    `Without --server, shows the counters of all nodes together: those of the node that answers as of now, those of the others as of a
few seconds ago. Rates are averages of the last seconds; ~ marks one of which more than a tenth may belong to another subject.
Keys: q ends, r and d change the order.`,
    "sluice top",
    "sluice top --by denials --count 5",
    "sluice top --server http://127.0.0.1:8080 --once",
  ).action(async (options: TopOptions) => {
    const session: TopSession = {
      ...{ terminal, signals },
      json: options.json === true,
      paint: paintFor(terminal.stdout, env),
      live: terminal.stdout.isTTY === true && env.TERM !== "dumb",
    };
    finish(await showTop(options, await createAsk(options, world), session));
  });
}

async function createAsk(options: TopOptions, { env, terminal }: TopWorld): Promise<AskHotKeys> {
  const { server, node } = options;
  if (server === undefined) {
    const { api } = await openControlSession(options, env, terminal);
    return (query) => api.nodes.hotKeys({ ...query, node });
  }
  const asked = await findServer(options, env, terminal);
  return async ({ by, count }) => parseAnswer(await askServer(asked, `v1/hot-keys?by=${by}&count=${count}`));
}

function parseAnswer(text: string): HotKeysBody {
  try {
    return JSON.parse(text) as HotKeysBody;
  } catch {
    throw new CommandError(`the server answered not as Sluice does: ${printable(text.slice(0, 200))}`);
  }
}
