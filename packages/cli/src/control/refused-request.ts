import { type AdminError, AdminUnavailable } from "@sluice/client/admin";
import type { AdminErrorBody } from "@sluice/protocol/admin";
import { printable } from "sluice/internal";
import { withCaAdvice } from "../server/ask-server.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";

/** What is known of the token that a control plane was asked with. */
export interface TokenSource {
  /** Where it comes from, for messages. Undefined: there is no token. */
  readonly tokenSource: string | undefined;
  /** What can be done without one. */
  readonly tokenHint?: string | undefined;
}

/** A request that the control plane refused, with what it said. */
export class RefusedRequest extends CommandError {
  override readonly name: string = "RefusedRequest";
  readonly body: Partial<AdminErrorBody>;

  constructor(message: string, exitCode: ExitCode, body: Partial<AdminErrorBody>) {
    super(message, exitCode);
    this.body = body;
  }
}

/** An error of the control plane's client, as this command reports it: what is wrong, what to do, and the exit code. */
export function explainAdminError(
  error: AdminError | AdminUnavailable,
  server: string,
  token: TokenSource,
): CommandError {
  if (error instanceof AdminUnavailable)
    return new CommandError(
      `no answer from ${server}: ${withCaAdvice(error.reason)}. Is there a control plane? ` +
        "A server with a policy store has one (sluice serve --store sqlite:sluice.db); name it with --admin or SLUICE_ADMIN_URL.",
      5,
    );
  const { status, problem, text } = error;
  const exitCode = exitCodesByCode[problem?.code ?? ""] ?? exitCodes[status] ?? 2;
  if (problem === undefined)
    return new RefusedRequest(
      `${server} answered ${status}, not as a control plane does: ${printable(text.slice(0, 200))}`,
      exitCode,
      {},
    );
  return new RefusedRequest(renderRefusal(problem, server, token), exitCode, problem);
}

/** What exit code a refusal has. Statuses that are not here are a failure of the server's. */
const exitCodes: Readonly<Record<number, ExitCode>> = {
  400: 1,
  401: 3,
  403: 3,
  404: 1,
  409: 4,
  412: 4,
  413: 1,
  422: 1,
  429: 5,
  503: 5,
};

/** A request that makes no sense is another's mistake than policies with errors. */
const exitCodesByCode: Readonly<Record<string, ExitCode>> = { not_found: 5, invalid_request: 2 };

function renderRefusal(
  { code, detail, problems = [] }: AdminErrorBody,
  server: string,
  { tokenSource, tokenHint }: TokenSource,
): string {
  // Where every problem is listed, the rest of the detail says the same.
  const said = printable(problems.length === 0 ? detail : (detail.split("\n", 1)[0] ?? ""));
  const list = problems.map(
    ({ field, message }) => `\n  ${printable(field === "(root)" ? message : `${flagFor(field)}: ${message}`)}`,
  );
  switch (code) {
    case "unauthenticated":
      return tokenSource === undefined
        ? `${server} needs a token. ${tokenHint ?? "Put one into SLUICE_TOKEN, or name a file that holds it with --token-file."}`
        : `the token in ${tokenSource} is not accepted: ${said}`;
    case "permission_denied":
      return `not allowed: ${said}${roleAdvice(said)}`;
    case "not_found":
      return `${server} answers, but not as a control plane of this version does; is it the admin port (8090 by custom)?`;
    case "rate_limited":
      return `the control plane is asked too often: ${said}`;
    default:
      // A single problem is all that there is to say: its detail repeats it.
      if (problems.length === 1 && said.includes(printable(problems[0]?.message ?? ""))) return (list[0] ?? "").trim();
      return `${problems.length === 0 ? said : said.replace(/:?$/, ":")}${list.join("")}`;
  }
}

/** Who lacks a role needs a token that has it; what other refusals need, they say themselves. */
function roleAdvice(said: string): string {
  const [, role] = /^this needs role (\w+)/.exec(said) ?? [];
  if (role === undefined) return "";
  return `. Ask with a token of that role (SLUICE_TOKEN or --token-file); an admin makes one: sluice token make --name NAME --role ${role}${role === "editor" ? " --team TEAM" : ""}`;
}

/** What was typed for a field of the API; other fields have the names of arguments, or are of a policy file. */
const flags: readonly (readonly [RegExp, string])[] = [
  [/^for_ms$/, "--for"],
  [/^until_ms$/, "--for or --until"],
  [/^expires_ms$/, "--expires"],
  [/^rollout\.steps\b.*/, "--rollout"],
  [/^rollout\.by$/, "--by"],
  [/^rollout\.starts_ms$/, "--start"],
  [/^rollout\.observe_for_ms$/, "--observe"],
  [/^rollout\.shadow$/, "--shadow"],
];

export function flagFor(field: string): string {
  return flags.find(([pattern]) => pattern.test(field))?.[1] ?? field;
}
