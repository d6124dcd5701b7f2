import { createInterface } from "node:readline";
import { printable } from "sluice/internal";
import { CommandError, type Terminal } from "./terminal.ts";

export interface Confirmation {
  /** What would be done: `Delete policy login?` */
  readonly question: string;
  /** What has to be typed. Absent: `y` or `yes`. */
  readonly word?: string;
  /** Whether it was confirmed on the command line: `--yes`. */
  readonly yes: boolean;
}

/**
 * Asks a person before something dangerous, and answers whether they agree. Without a terminal to ask at, it is refused
 * with what to do.
 */
export async function confirm({ question, word, yes }: Confirmation, { stdin, stderr }: Terminal): Promise<boolean> {
  if (yes) return true;
  const asked = question.split("\n").map(printable).join("\n");
  if (stdin?.isTTY !== true)
    throw new CommandError(
      `${asked}\nThis is not a terminal, so you cannot answer that here, and nothing was done. Add --yes to do it without being asked.`,
    );
  stderr.write(`${asked} ${word === undefined ? "[y/N]" : `Type ${word} to go on:`} `);
  const line = await readLine(stdin);
  // If the input ends, return was not pressed.
  if (line === undefined) stderr.write("\n");
  const answer = line?.trim().toLowerCase() ?? "";
  const agreed = word === undefined ? /^y(es)?$/.test(answer) : answer === word.toLowerCase();
  if (!agreed) stderr.write("Nothing was done.\n");
  return agreed;
}

/** Undefined where the input ends instead. */
async function readLine(input: NodeJS.ReadableStream): Promise<string | undefined> {
  const lines = createInterface({ input });
  try {
    for await (const line of lines) return line;
    return undefined;
  } finally {
    lines.close();
    input.pause();
  }
}
