import type { Arguments } from "../arguments.ts";
import type { CommandContext } from "../command.ts";
import { bulk, failure, integer, none, ok, verbatim } from "../replies.ts";
import type { Session } from "../session.ts";

const maxNameLength = 128;
const badName = failure("ERR", `names have at most ${maxNameLength} printable ASCII characters and no spaces`);
const syntax = failure("ERR", "syntax error");

/** What is wrong with a client's name for itself: it is shown in lines of `name=value`. */
export function problemOfName(name: string): string | undefined {
  return /^[!-~]*$/.test(name) && name.length <= maxNameLength ? undefined : badName;
}

type Subcommand = (args: Arguments, context: CommandContext) => string;

/** CLIENT: what libraries send when they connect. No client sees anything of the others. */
const subcommands: Readonly<Record<string, Subcommand>> = {
  ID: (_args, { session }) => integer(session.id),
  GETNAME: (_args, { session }) => (session.name === "" ? none(session.version) : bulk(session.name)),
  SETNAME(args, { session }) {
    if (args.count !== 3) return syntax;
    const name = args.text(2);
    const problem = problemOfName(name);
    if (problem !== undefined) return problem;
    session.name = name;
    return ok;
  },
  SETINFO(args, { session }) {
    if (args.count !== 4) return syntax;
    const value = args.text(3);
    const problem = problemOfName(value);
    if (problem !== undefined) return problem;
    const attribute = args.bytes(2).toUpperCase();
    if (attribute === "LIB-NAME") session.libraryName = value;
    else if (attribute === "LIB-VER") session.libraryVersion = value;
    else return failure("ERR", "CLIENT SETINFO supports LIB-NAME and LIB-VER");
    return ok;
  },
  INFO: (_args, { session }) => verbatim(`${describe(session)}\n`, session.version),
  LIST: (_args, { session }) => verbatim(`${describe(session)}\n`, session.version),
  "NO-EVICT": () => ok,
  "NO-TOUCH": () => ok,
  REPLY: (args) =>
    args.count === 3 && args.bytes(2).toUpperCase() === "ON"
      ? ok
      : failure("ERR", "CLIENT REPLY supports only ON: every command is answered"),
};

export function client(args: Arguments, context: CommandContext): string {
  const name = args.bytes(1).toUpperCase();
  const subcommand = Object.hasOwn(subcommands, name) ? subcommands[name] : undefined;
  if (subcommand !== undefined) return subcommand(args, context);
  return failure("ERR", `unknown subcommand '${name.slice(0, 32)}'. There are ${Object.keys(subcommands).join(", ")}`);
}

function describe({ id, address, name, sinceMs, caller, version, libraryName, libraryVersion }: Session): string {
  const ageSeconds = Math.floor((performance.now() - sinceMs) / 1_000);
  return (
    `id=${id} addr=${address} name=${name} age=${ageSeconds} idle=0 db=0 cmd=client user=${caller?.name ?? ""} ` +
    `lib-name=${libraryName} lib-ver=${libraryVersion} resp=${version}`
  );
}
