import { printableLines } from "sluice";
import { type AskedOf, createAsker, writeNotice } from "./asker.ts";
import { type CheckOptions, parseCheckRequest } from "./check-options.ts";
import { renderJson } from "./control/write-json.ts";
import type { ExitCode, Terminal } from "./terminal.ts";

/** `sluice explain`: which policies matched, which counters they led to, and why the answer is what it is. */
export async function explain(
  words: readonly string[],
  options: CheckOptions,
  findAsked: () => Promise<AskedOf>,
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
