import { stripVTControlCharacters } from "node:util";

/** Control characters, halves of characters, and marks that turn the direction of what follows. */
const unwelcome = /[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;

/** What others wrote, on one line and without anything that a terminal would obey. */
export function plainText(text: string): string {
  return stripVTControlCharacters(text).replaceAll(/\s+/g, " ").replaceAll(unwelcome, "").trim();
}
