import { printableLines } from "sluice/internal";
import { type CheckOptions, parseCheckRequest } from "../arguments/parse-check.ts";
import { createAsker, type Decider, writeNotice } from "../server/asker.ts";
import type { ExitCode, Terminal } from "../terminal/terminal.ts";
import { renderJson } from "../terminal/write-json.ts";

/** `sluice explain`: which policies matched, which counters they led to, and why the answer is what it is. */
export async function explain(
  words: readonly string[],
  options: CheckOptions,
  findAsked: () => Promise<Decider>,
  terminal: Terminal,
): Promise<ExitCode> {
  const request = parseCheckRequest(words, options);
  const asker = await createAsker(await findAsked());
  try {
    writeNotice(asker, options.json === true, terminal);
    if (options.json === true) {
      terminal.stdout.write(`${renderJson(await asker.explain(request), 2)}\n`);
      return 0;
    }
    const text = printableLines(await asker.explainInText(request));
    terminal.stdout.write(text.endsWith("\n") ? text : `${text}\n`);
    return 0;
  } finally {
    await asker.close();
  }
}
