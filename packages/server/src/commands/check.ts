import { createLocalAsker, createRemoteAsker } from "./asker.ts";
import { type CheckOptions, parseCheckRequest, parseWhole } from "./check-options.ts";
import { renderDecision } from "./render-decision.ts";
import type { ExitCode, Terminal } from "./terminal.ts";

const maxRepeat = 1_000_000;

/** `sluice check`: decides in this process, or asks a server. */
export async function check(
  words: readonly string[],
  options: CheckOptions & { readonly repeat?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  const request = parseCheckRequest(words, options);
  const repeat = options.repeat === undefined ? 1 : parseWhole("--repeat", options.repeat, 1, maxRepeat);
  const asker =
    options.server === undefined ? await createLocalAsker(options.config) : createRemoteAsker(options.server);
  if (options.server === undefined && options.config === undefined)
    terminal.stderr.write("No policy file is named (--config), so the default policy decides.\n");
  let denied = 0;
  for (let asked = 0; asked < repeat; asked++) {
    const decision = await asker.check(request);
    if (!decision.allowed) denied++;
    terminal.stdout.write(options.json === true ? `${JSON.stringify(decision)}\n` : renderDecision(decision));
  }
  if (repeat > 1 && options.json !== true) terminal.stdout.write(`\n${repeat - denied} allowed, ${denied} denied\n`);
  return denied === 0 ? 0 : 1;
}
