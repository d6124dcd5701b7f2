/** The most characters of one text that are logged. */
export const maxTextLength = 4_096;

const instead = "[redacted]";

/** Names that announce a secret in text: `password=…`, `"api_key":"…"`, also at the end of longer names. */
const names = "passw(?:or)?d|secret|token|api[_-]?key|private[_-]?key";

/**
 * What gives a secret away by what precedes it, or by its own looks.
 *
 * Each pattern reads a text once: it begins with fixed words, and what it repeats cannot contain another beginning, or
 * is consumed by the match. A pattern that may begin anywhere and reads on to the end, such as `\w*password`, takes
 * quadratic time.
 */
const patterns: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, instead],
  [/sluice_[\w-]{43,}/g, instead],
  [/\b(bearer|basic)[ :]+[\w.~+/=-]{4,}/gi, `$1 ${instead}`],
  [/(authorization|cookie)( ?[:=] ?)[^\r\n"]+/gi, `$1$2${instead}`],
  [new RegExp(`(${names})( ?= ?)(?:"[^"]*|'[^']*|[^\\s"'&;,]+)`, "gi"), `$1$2${instead}`],
  [new RegExp(`(${names})(" ?: ?")(?:[^"\\\\]|\\\\[\\s\\S])*`, "gi"), `$1$2${instead}`],
  [new RegExp(`(${names})(\\\\" ?: ?\\\\")[^"\\\\]*`, "gi"), `$1$2${instead}`],
  // Redis commands, and the server's echo of an unknown one. `AUTH <password> called without …` contains no password.
  [/\b(AUTH|REQUIREPASS|MASTERAUTH)(?: (?!<)\S+){1,2}/g, `$1 ${instead}`],
  [/(with args beginning with:)[\s\S]*/g, `$1 ${instead}`],
];

/** What every recognizable secret has in or before it. Most texts have none of it, and are not examined further. */
const hint =
  /:\/\/|PRIVATE KEY|sluice_|bearer|basic|authorization|cookie|passw|secret|token|key|AUTH|REQUIREPASS|with args/i;

/**
 * A text as it may be logged: without recognizable secrets, and cut if it is longer than `most`.
 *
 * It is cut first, so that the work is bounded whatever arrives. A secret across the cut is not half shown: the word
 * that was cut is left out, and what announces a secret hides all that is left of it.
 */
export function redactText(text: string, most: number = maxTextLength): string {
  if (text.length <= most) return redact(text, false);
  const kept = redact(text.slice(0, endOfLastWord(text, most)), true);
  return `${kept.slice(0, most)}… (${text.length} characters)`;
}

function redact(text: string, isCut: boolean): string {
  if (!hint.test(text)) return text;
  let redacted = text.includes("://") ? redactAddresses(text, isCut) : text;
  for (const [pattern, replacement] of patterns) redacted = redacted.replace(pattern, replacement);
  return redacted;
}

/** Where to cut a text so that no token is cut in two. */
function endOfLastWord(text: string, most: number): number {
  let end = most;
  if (tokenCodes.has(text.charCodeAt(end))) while (end > 0 && tokenCodes.has(text.charCodeAt(end - 1))) end -= 1;
  return end;
}

/** The characters of tokens and keys. */
const tokenCodes: ReadonlySet<number> = new Set(
  Array.from({ length: 128 }, (_, code) => code).filter((code) => /[\w.~+/=%-]/.test(String.fromCharCode(code))),
);

/** Hides passwords in addresses: `redis://user:password@host`, even if the end of one was cut off. */
function redactAddresses(text: string, isCut: boolean): string {
  return text.replace(/[^\s"]+/g, (word, at: number) =>
    word.includes("://") ? redactWord(word, isCut && at + word.length === text.length) : word,
  );
}

/** A word may hold several addresses. A password ends at the last @ before the path, or else at the first @ after that. */
function redactWord(word: string, isCut: boolean): string {
  let redacted = "";
  let done = 0;
  for (let found = word.indexOf("://"); found !== -1; found = word.indexOf("://", done)) {
    const host = found + 3;
    const colon = findNext(/[:/@]/g, word, host);
    let end = host;
    if (word[colon] === ":") {
      const path = findNext(/[/?#]/g, word, colon + 1);
      const last = word.slice(colon + 1, path).lastIndexOf("@");
      end = last === -1 ? word.indexOf("@", path) : colon + 1 + last;
      if (end === -1) return redacted + (isCut ? word.slice(done, colon + 1) + instead : word.slice(done));
      redacted += word.slice(done, colon + 1) + instead;
    } else {
      redacted += word.slice(done, host);
    }
    done = end;
  }
  return redacted + word.slice(done);
}

function findNext(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index ?? text.length;
}
