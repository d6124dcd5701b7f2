import { CommandError } from "../terminal/terminal.ts";

/** Whom limits and tiers are particular to: `user=u1`. */
export interface Subject {
  readonly dimension: string;
  readonly value: string;
}

export function parseSubject(word: string): Subject {
  const split = word.indexOf("=");
  if (split < 1 || split === word.length - 1)
    throw new CommandError(`${JSON.stringify(word)} is not a subject; write it as dimension=value, such as user=u1`);
  return { dimension: word.slice(0, split), value: word.slice(split + 1) };
}
