import { createLocalAsker, createRemoteAsker } from "./asker.ts";
import { type CheckOptions, parseCheckRequest } from "./check-options.ts";
import type { ExitCode, Terminal } from "./terminal.ts";

/** `sluice explain`: which policies matched, which counters they led to, and why the answer is what it is. */
export async function explain(words: readonly string[], options: CheckOptions, terminal: Terminal): Promise<ExitCode> {
  const request = parseCheckRequest(words, options);
  const asker =
    options.server === undefined ? await createLocalAsker(options.config) : createRemoteAsker(options.server);
  if (options.json === true) {
    terminal.stdout.write(`${JSON.stringify(await asker.explain(request), undefined, 2)}\n`);
    return 0;
  }
  const text = await asker.explainInText(request);
  terminal.stdout.write(text.endsWith("\n") ? text : `${text}\n`);
  return 0;
}
