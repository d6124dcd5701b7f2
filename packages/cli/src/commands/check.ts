import { type CheckOptions, parseCheckRequest, parseWhole } from "../arguments/parse-check.ts";
import { type Asker, createAsker, type Decider, writeNotice } from "../server/asker.ts";
import type { ExitCode, Terminal } from "../terminal/terminal.ts";
import { renderJson } from "../terminal/write-json.ts";
import { renderDecision } from "./render-decision.ts";

const maxRepeat = 1_000_000;

type RepeatedCheckOptions = CheckOptions & { readonly repeat?: string };

/** `sluice check`: asks a server, or decides in this process. */
export async function check(
  words: readonly string[],
  options: RepeatedCheckOptions,
  findAsked: () => Promise<Decider>,
  terminal: Terminal,
): Promise<ExitCode> {
  const request = parseCheckRequest(words, options);
  const repeat = options.repeat === undefined ? 1 : parseWhole("--repeat", options.repeat, 1, maxRepeat);
  const asker = await createAsker(await findAsked());
  try {
    writeNotice(asker, options.json === true, terminal);
    const denied = await ask(asker, request, repeat, options, terminal);
    return denied === 0 ? 0 : 1;
  } finally {
    await asker.close();
  }
}

/** Asks so many times, and answers how often it was denied. */
async function ask(
  asker: Asker,
  request: ReturnType<typeof parseCheckRequest>,
  repeat: number,
  options: RepeatedCheckOptions,
  terminal: Terminal,
): Promise<number> {
  let denied = 0;
  for (let asked = 0; asked < repeat; asked++) {
    const decision = await asker.check(request);
    if (!decision.allowed) denied++;
    terminal.stdout.write(options.json === true ? `${renderJson(decision)}\n` : renderDecision(decision));
  }
  if (repeat > 1 && options.json !== true) terminal.stdout.write(`\n${repeat - denied} allowed, ${denied} denied\n`);
  return denied;
}
