import type { HotKeysBody } from "@sluice/protocol/admin";
import { type Command, Option } from "commander";
import { printable } from "sluice";
import type { Signals } from "../../boot/early-signals.ts";
import { askServer, findServer } from "../ask-server.ts";
import type { Environment } from "../find-token.ts";
import { CommandError, type ExitCode, type Terminal } from "../terminal.ts";
import { controlCommand, withExamples } from "./control-command.ts";
import { openControlSession } from "./control-session.ts";
import { paintFor } from "./paint.ts";
import { type AskHotKeys, showTop, type TopOptions, type TopSession } from "./top.ts";

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
    return (query) => api.hotKeys({ ...query, node });
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
