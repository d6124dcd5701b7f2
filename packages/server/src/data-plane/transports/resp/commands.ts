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

/** Every command there is. Arity is checked before a command runs, and so is what its caller may do. */
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
  { name: "ping", summary: "Answers PONG, or what it was given", arity: -1, needs: "nothing", run: ping },
  {
    name: "echo",
    summary: "Answers what it was given",
    arity: 2,
    needs: "nothing",
    run: (args) => bulkBytes(args.bytes(1)),
  },
  {
    name: "hello",
    summary: "Chooses the version of the protocol, and tells of the server",
    arity: -1,
    needs: "nothing",
    beforeAuth: true,
    run: hello,
  },
  {
    name: "auth",
    summary: "Says who is asking, by a token",
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
    summary: "Makes the connection as new, token and version included",
    arity: 1,
    needs: "nothing",
    beforeAuth: true,
    run(_args, { session }) {
      session.reset();
      return simple("RESET");
    },
  },
  { name: "select", summary: "Takes database 0, the only one", arity: 2, needs: "nothing", run: select },
  { name: "client", summary: "Tells of this connection, and names it", arity: -2, needs: "nothing", run: client },
  { name: "command", summary: "Tells of the commands", arity: -1, needs: "nothing", run: describeCommands },
  {
    name: "config",
    summary: "Has nothing to tell: settings are Sluice's own",
    arity: -2,
    needs: "nothing",
    run: (args, { session }) =>
      args.count >= 3 && args.bytes(1).toUpperCase() === "GET"
        ? map([], session.version)
        : failure("ERR", "CONFIG knows GET only, and has nothing to tell"),
  },
  { name: "info", summary: "Tells how the server does", arity: -1, needs: "nothing", run: info },
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
