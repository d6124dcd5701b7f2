/**
 * Replies as they are sent, one character for each byte. `RespVersion` is what the client chose with HELLO: version 2
 * writes a map as an array of names and values, and has neither booleans nor null.
 */
export type RespVersion = 2 | 3;

export const ok = "+OK\r\n";

/** A few ASCII words on one line. */
export function simple(text: string): string {
  return `+${text}\r\n`;
}

/** Callers deal with Infinity and unknown values. */
export function integer(value: number): string {
  return `:${value}\r\n`;
}

/** A text in UTF-8. */
export function bulk(text: string): string {
  return bulkBytes(encodeUtf8(text));
}

/** Bytes, one character for each. */
export function bulkBytes(bytes: string): string {
  return `$${bytes.length}\r\n${bytes}\r\n`;
}

export function none(version: RespVersion): string {
  return version === 2 ? "$-1\r\n" : "_\r\n";
}

export function array(items: readonly string[]): string {
  return `*${items.length}\r\n${items.join("")}`;
}

/** Alternating names and values, all of them encoded. */
export function map(namesAndValues: readonly string[], version: RespVersion): string {
  const mark = version === 2 ? `*${namesAndValues.length}` : `%${namesAndValues.length / 2}`;
  return `${mark}\r\n${namesAndValues.join("")}`;
}

/** Text for people to read, of several lines. */
export function verbatim(text: string, version: RespVersion): string {
  if (version === 2) return bulk(text);
  const bytes = encodeUtf8(text);
  return `=${bytes.length + 4}\r\ntxt:${bytes}\r\n`;
}

const maxErrorLength = 500;

/** An error: a word for programs, then a sentence. Kept to one line, of bounded length. */
export function failure(prefix: string, message: string): string {
  const cut = message.length <= maxErrorLength ? message : `${message.slice(0, maxErrorLength - 1)}…`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be sent.
  return `-${prefix} ${encodeUtf8(cut.replace(/[\x00-\x1f\x7f]+/g, " "))}\r\n`;
}

/** The bytes of a text in UTF-8, one character for each. */
function encodeUtf8(text: string): string {
  for (let i = 0; i < text.length; i++)
    if (text.charCodeAt(i) > 0x7f) return Buffer.from(text, "utf8").toString("latin1");
  return text;
}
