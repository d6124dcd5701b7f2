import { type Command, Option } from "commander";
import { printable } from "sluice";
import type { Signals } from "../../early-signals.ts";
import { askServer, isInTheClear } from "../ask-server.ts";
import { CommandError, type ExitCode, type Terminal } from "../terminal.ts";
import type { HotKeysBody } from "./admin-bodies.ts";
import { controlCommand, withExamples } from "./control-command.ts";
import { type Environment, findToken, openControlSession } from "./control-session.ts";
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
    controlCommand(program, "top", "Tell which counters are asked for most, or denied most, live in a terminal.")
      .option("--by <order>", "rate: by decisions a second; denials: by denials a second", "rate")
      .option("--count <number>", "how many, at most 100", "20")
      .option("--every <while>", "how often it is looked at, 200ms to 1m", "1s")
      .option("--once", "print one table and end, as where nobody looks")
      .option("--node <node>", "only what this node tells, by its id or its name")
      .addOption(
        new Option(
          "--server <url>",
          "ask this server of itself, such as http://127.0.0.1:8080; for those without a control plane",
        ).conflicts(["admin", "node"]),
      ),
    `Without --server all nodes of a control plane are told of together: the one that is asked as of now, the others as of a few seconds
ago. Rates are those of the last seconds; ~ stands before one of which more than a tenth may be another subject's. Keys: q ends,
r and d change the order.`,
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
  const { token, source } = await findToken(options, env);
  if (token !== undefined && isInTheClear(server))
    terminal.stderr.write(
      `The token in ${source} travels in the clear to ${server}, and others can read it on the way; use https:// instead.\n`,
    );
  return async ({ by, count }) =>
    parseAnswer(await askServer({ server, token }, `v1/hot-keys?by=${by}&count=${count}`));
}

function parseAnswer(text: string): HotKeysBody {
  try {
    return JSON.parse(text) as HotKeysBody;
  } catch {
    throw new CommandError(`the server answered not as Sluice does: ${printable(text.slice(0, 200))}`);
  }
}
