import type { Arguments } from "../arguments.ts";
import type { Command, CommandContext } from "../command.ts";
import { array, bulk, failure, integer, map, none, type RespVersion, simple } from "../replies.ts";

/** COMMAND [COUNT | LIST | INFO [name …] | DOCS [name …]] */
export function describeCommands(args: Arguments, { commands, session }: CommandContext): string {
  const { version } = session;
  if (args.count === 1) return array(commands.map(describe));
  const subcommand = args.bytes(1).toUpperCase();
  const named: (Command | undefined)[] = [];
  for (let i = 2; i < args.count; i++) {
    const name = args.bytes(i).toLowerCase();
    named.push(commands.find((command) => command.name === name));
  }
  const chosen = named.length === 0 ? commands : named;
  switch (subcommand) {
    case "COUNT":
      return integer(commands.length);
    case "LIST":
      return array(commands.map(({ name }) => bulk(name)));
    case "INFO":
      return array(chosen.map((command) => (command === undefined ? noArray(version) : describe(command))));
    case "DOCS":
      return map(
        chosen.flatMap((command) => (command === undefined ? [] : [bulk(command.name), document(command, version)])),
        version,
      );
    default:
      return failure("ERR", `unknown subcommand '${subcommand.slice(0, 32)}'. There are COUNT, LIST, INFO, DOCS`);
  }
}

/** Name, arity, flags, where keys are (first, last, step), categories, hints, key specifications, subcommands. */
function describe({ name, arity, hasKey, beforeAuth }: Command): string {
  const key = integer(hasKey === true ? 1 : 0);
  const flags = [...(hasKey === true ? ["write"] : []), "fast", ...(beforeAuth === true ? ["no_auth"] : [])];
  const nothing = array([]);
  return array([
    bulk(name),
    integer(arity),
    array(flags.map(simple)),
    key,
    key,
    key,
    nothing,
    nothing,
    nothing,
    nothing,
  ]);
}

function document({ summary }: Command, version: RespVersion): string {
  return map([bulk("summary"), bulk(summary), bulk("group"), bulk("connection")], version);
}

function noArray(version: RespVersion): string {
  return version === 2 ? "*-1\r\n" : none(version);
}
