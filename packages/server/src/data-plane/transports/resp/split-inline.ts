import { ProtocolError } from "./protocol-error.ts";

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "\b", a: "\x07" };
const unbalanced = "unbalanced quotes in request";

/**
 * The words of a line as people type it, one character for each byte. Words may be quoted: in double quotes `\n`, `\r`,
 * `\t`, `\b`, `\a` and `\x41` mean what they do in C, in single quotes only `\'` means anything.
 */
export function splitInline(line: string): readonly string[] {
  const words: string[] = [];
  let at = 0;
  for (;;) {
    while (isSpace(line[at])) at += 1;
    if (at >= line.length) return words;
    let word = "";
    while (at < line.length && !isSpace(line[at])) {
      const quote = line[at]!;
      if (quote !== '"' && quote !== "'") {
        word += quote;
        at += 1;
        continue;
      }
      const quoted = readQuoted(line, at + 1, quote);
      word += quoted.text;
      at = quoted.end;
    }
    words.push(word);
  }
}

/** The quoted text that starts here, and where the line continues after it, which must be the end of a word. */
function readQuoted(line: string, start: number, quote: string): { readonly text: string; readonly end: number } {
  let text = "";
  let at = start;
  for (; at < line.length && line[at] !== quote; at++) {
    const next = line[at + 1] ?? "";
    if (line[at] !== "\\" || (quote === "'" && next !== "'")) {
      text += line[at];
      continue;
    }
    const hex = /^x([\da-f]{2})/i.exec(line.slice(at + 1, at + 4))?.[1];
    if (quote === '"' && hex !== undefined) {
      text += String.fromCharCode(Number.parseInt(hex, 16));
      at += 3;
    } else {
      text += quote === '"' ? (escapes[next] ?? next) : next;
      at += 1;
    }
  }
  const closed = at < line.length;
  if (!closed || (at + 1 < line.length && !isSpace(line[at + 1]))) throw new ProtocolError(unbalanced);
  return { text, end: at + 1 };
}

function isSpace(character: string | undefined): boolean {
  return character === " " || character === "\t" || character === "\r" || character === "\0";
}
