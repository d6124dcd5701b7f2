/** Runs of characters that end or move a line. */
const breaks = /[\t-\r\u0085\u2028\u2029]+/g;

/** Control characters, halves of characters, and invisible or direction-changing marks. */
const obeyed = /[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;

/**
 * Untrusted text made safe for a terminal, a log or a text answer: on one line, with everything that a terminal would
 * obey written as an escape (`\u001b`). A name can then neither move the cursor nor look like a line of ours.
 */
export function printable(text: string): string {
  return text.replace(breaks, " ").replace(obeyed, escapeCharacter);
}

/** The same for text of several lines, which keep their ends. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** JSON that means the same and does nothing to a terminal: JSON itself does not escape all control characters. */
export function printableJson(json: string): string {
  return json.replace(obeyedInJson, escapeCharacter);
}

const obeyedInJson = /[\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
