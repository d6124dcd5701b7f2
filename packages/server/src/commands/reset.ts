import { askServer, type ServerOptions } from "./ask-server.ts";
import { type CheckOptions, parseCheckRequest } from "./check-options.ts";
import type { ExitCode, Terminal } from "./terminal.ts";

/** `sluice reset`: forgets the counters of a subject, on a server. Needs a token of role operator. */
export async function reset(
  words: readonly string[],
  options: Pick<CheckOptions, "domain" | "policy">,
  server: ServerOptions,
  { stdout }: Pick<Terminal, "stdout">,
): Promise<ExitCode> {
  const body = parseCheckRequest(words, options);
  await askServer(server, "v1/reset", { body, empty: true });
  stdout.write("The counters are as new, and blocks are lifted.\n");
  return 0;
}
