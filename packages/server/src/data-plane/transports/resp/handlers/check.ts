import type { Arguments } from "../arguments.ts";
import type { CommandContext } from "../command.ts";
import { encodeDecision } from "../encode-decision.ts";
import { parseCheck } from "../parse-check.ts";

/** SLUICE.CHECK word …: see `parseCheck`. */
export function check(args: Arguments, { service, session, checks }: CommandContext): string | Promise<string> {
  checks.count += 1;
  const decided = service.decide.one(parseCheck(args));
  const { version } = session;
  if (decided instanceof Promise) return decided.then((decision) => encodeDecision(decision, version));
  return encodeDecision(decided, version);
}
