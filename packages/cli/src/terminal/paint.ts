import type { TerminalOutput } from "./terminal.ts";

/** Colours, if the output is a terminal. */
export interface Paint {
  good(text: string): string;
  bad(text: string): string;
  careful(text: string): string;
  faint(text: string): string;
  strong(text: string): string;
  /** White on red: not to be overlooked. */
  alarm(text: string): string;
}

const plain = (text: string): string => text;

export const noPaint: Paint = { good: plain, bad: plain, careful: plain, faint: plain, strong: plain, alarm: plain };

const colours: Paint = {
  good: style(32, 39),
  bad: style(31, 39),
  careful: style(33, 39),
  faint: style(2, 22),
  strong: style(1, 22),
  alarm: (text) => `\u001b[1;97;41m${text}\u001b[0m`,
};

/** None unless it is a terminal, and `NO_COLOR` says nothing. */
export function paintFor(output: TerminalOutput, env: Readonly<Record<string, string | undefined>>): Paint {
  return output.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb" ? colours : noPaint;
}

function style(on: number, off: number): (text: string) => string {
  return (text) => `\u001b[${on}m${text}\u001b[${off}m`;
}
