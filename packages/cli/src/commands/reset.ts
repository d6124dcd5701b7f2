import { printable } from "sluice/internal";
import type { ServerFlags } from "../arguments/find-token.ts";
import { type CheckOptions, parseCheckRequest } from "../arguments/parse-check.ts";
import { askServer, type ServerOptions } from "../server/ask-server.ts";
import type { ExitCode, Terminal } from "../terminal/terminal.ts";
import { renderJson } from "../terminal/write-json.ts";

export type ResetCommandOptions = Pick<CheckOptions, "domain" | "policy"> & ServerFlags;

/** What `POST /v1/reset` answers. */
interface ResetBody {
  readonly counters: readonly { readonly policy: string; readonly scope: string; readonly subject: string }[];
}

/** `sluice reset`: resets the counters that a request is counted in, on a server. 1 where there are none. */
export async function reset(
  words: readonly string[],
  { domain, policy, json }: ResetCommandOptions,
  server: ServerOptions,
  { stdout, stderr }: Terminal,
): Promise<ExitCode> {
  const body = parseCheckRequest(words, { ...(domain && { domain }), ...(policy && { policy }) });
  const answer = JSON.parse(await askServer(server, "v1/reset", { body })) as ResetBody;
  const { counters } = answer;
  if (json === true) stdout.write(`${renderJson(answer)}\n`);
  else if (counters.length === 0) stdout.write("Nothing was reset: no policy counts such a request.\n");
  else stdout.write(`Reset, with blocks lifted:\n${counters.map(renderCounter).join("")}`);
  // Policies for an endpoint do not match a request without one, and their counters stay as they are.
  if (body.dimensions?.endpoint === undefined && policy === undefined)
    stderr.write(
      `The request has no endpoint, so policies for an endpoint were left out. Every counter of a subject: sluice subject reset ${printable(words[0] ?? "")}\n`,
    );
  return counters.length === 0 ? 1 : 0;
}

function renderCounter({ policy, scope, subject }: ResetBody["counters"][number]): string {
  return `  ${printable(`${policy} / ${scope}${subject === "" ? "" : `: ${subject}`}`)}\n`;
}
