import type { Arguments } from "./arguments.ts";
import type { Command } from "./command.ts";
import { authenticate } from "./handlers/authenticate.ts";
import { check } from "./handlers/check.ts";
import { client } from "./handlers/client.ts";
import { describeCommands } from "./handlers/describe-commands.ts";
import { hello } from "./handlers/hello.ts";
import { info } from "./handlers/info.ts";
import { resetCounters } from "./handlers/reset-counters.ts";
import { throttle } from "./handlers/throttle.ts";
import { bulkBytes, failure, map, ok, simple } from "./replies.ts";

/** Every command there is. Arity and the caller's permission are checked before a command runs. */
export const commands: readonly Command[] = [
  {
    name: "cl.throttle",
    summary: "Decides by a limit that the command brings along, as redis-cell does",
    arity: -5,
    needs: "check",
    hasKey: true,
    run: throttle,
  },
  { name: "sluice.check", summary: "Decides by the policies in force", arity: -2, needs: "check", run: check },
  {
    name: "sluice.reset",
    summary: "Forgets the counters that a check would be counted in",
    arity: -2,
    needs: "operate",
    run: resetCounters,
  },
  { name: "ping", summary: "Answers PONG, or its argument", arity: -1, needs: "nothing", run: ping },
  {
    name: "echo",
    summary: "Answers its argument",
    arity: 2,
    needs: "nothing",
    run: (args) => bulkBytes(args.bytes(1)),
  },
  {
    name: "hello",
    summary: "Chooses the protocol version, and describes the server",
    arity: -1,
    needs: "nothing",
    beforeAuth: true,
    run: hello,
  },
  {
    name: "auth",
    summary: "Authenticates with a token",
    arity: -2,
    needs: "nothing",
    beforeAuth: true,
    run: authenticate,
  },
  {
    name: "quit",
    summary: "Closes the connection",
    arity: -1,
    needs: "nothing",
    beforeAuth: true,
    run(_args, { session }) {
      session.isOver = true;
      return ok;
    },
  },
  {
    name: "reset",
    summary: "Resets the connection, including token and version",
    arity: 1,
    needs: "nothing",
    beforeAuth: true,
    run(_args, { session }) {
      session.reset();
      return simple("RESET");
    },
  },
  { name: "select", summary: "Selects database 0, the only one", arity: 2, needs: "nothing", run: select },
  { name: "client", summary: "Shows this connection, and names it", arity: -2, needs: "nothing", run: client },
  { name: "command", summary: "Describes the commands", arity: -1, needs: "nothing", run: describeCommands },
  {
    name: "config",
    summary: "Returns nothing: Sluice has its own settings",
    arity: -2,
    needs: "nothing",
    run: (args, { session }) =>
      args.count >= 3 && args.bytes(1).toUpperCase() === "GET"
        ? map([], session.version)
        : failure("ERR", "CONFIG supports only GET, and returns nothing"),
  },
  { name: "info", summary: "Shows the server's status", arity: -1, needs: "nothing", run: info },
];

function ping(args: Arguments): string {
  if (args.count > 2) return failure("ERR", "wrong number of arguments for 'ping' command");
  return args.count === 2 ? bulkBytes(args.bytes(1)) : simple("PONG");
}

function select(args: Arguments): string {
  const index = args.bytes(1);
  if (index === "0") return ok;
  return failure("ERR", /^\d+$/.test(index) ? "DB index is out of range" : "invalid DB index");
}
