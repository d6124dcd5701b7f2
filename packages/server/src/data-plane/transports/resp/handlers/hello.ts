import type { Arguments } from "../arguments.ts";
import type { CommandContext } from "../command.ts";
import { array, bulk, failure, integer, map } from "../replies.ts";
import { refuseToken } from "./authenticate.ts";
import { problemOfName } from "./client.ts";

const notYet = failure(
  "NOAUTH",
  "HELLO must come after AUTH, or bring user and token along: HELLO 3 AUTH default <token>",
);

/** HELLO [2|3 [AUTH user token] [SETNAME name]] */
export function hello(args: Arguments, { service, session }: CommandContext): string {
  let { version } = session;
  if (args.count > 1) {
    const asked = args.bytes(1);
    if (asked !== "2" && asked !== "3") return failure("NOPROTO", "unsupported protocol version");
    version = asked === "2" ? 2 : 3;
  }
  let name: string | undefined;
  for (let i = 2; i < args.count; i++) {
    const option = args.bytes(i).toUpperCase();
    if (option === "AUTH" && i + 2 < args.count) {
      const refused = refuseToken(session, args.text(i + 1), args.text(i + 2));
      if (refused !== undefined) return refused;
      i += 2;
    } else if (option === "SETNAME" && i + 1 < args.count) {
      i += 1;
      name = args.text(i);
      const problem = problemOfName(name);
      if (problem !== undefined) return problem;
    } else return failure("ERR", `syntax error in HELLO option '${option.slice(0, 32)}'`);
  }
  if (session.caller === undefined) return notYet;
  if (name !== undefined) session.name = name;
  session.version = version;
  const facts: readonly (readonly [string, string])[] = [
    ["server", bulk("sluice")],
    ["version", bulk(service.version)],
    ["proto", integer(version)],
    ["id", integer(session.id)],
    ["mode", bulk("standalone")],
    ["role", bulk("master")],
    ["modules", array([])],
  ];
  return map(
    facts.flatMap(([fact, value]) => [bulk(fact), value]),
    version,
  );
}
