import type { Arguments } from "../arguments.ts";
import type { CommandContext } from "../command.ts";
import { failure, ok } from "../replies.ts";
import type { Session } from "../session.ts";

const refusals = {
  unknown: failure("WRONGPASS", "this user and token are not known here"),
  needless: failure("ERR", "AUTH was called, but this server knows no tokens: connect without a password"),
} as const;

/** AUTH [user] token */
export function authenticate(args: Arguments, { session }: CommandContext): string {
  if (args.count > 3) return failure("ERR", "syntax error");
  const user = args.count === 3 ? args.text(1) : undefined;
  return refuseToken(session, user, args.text(args.count - 1)) ?? ok;
}

/** Accepts a token, or returns why not. */
export function refuseToken(session: Session, user: string | undefined, token: string): string | undefined {
  const answer = session.authenticate(user, token);
  return answer === "known" ? undefined : refusals[answer];
}
