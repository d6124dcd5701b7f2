import type { CheckRequest } from "sluice";
import { maxCost, maxDeadlineMs, maxDimensionLength, maxDimensions, maxIdLength, maxNameLength } from "sluice/internal";
import type { Arguments } from "./arguments.ts";
import { invalidWord } from "./invalid-word.ts";
import { readWhole } from "./read-whole.ts";

type ParsedCheck = { -readonly [Field in keyof CheckRequest]: CheckRequest[Field] } & {
  policies?: string[] | undefined;
};

/** The options of a check. All but PREVIEW take the next word as their value. */
const options: Readonly<Record<string, ((asked: ParsedCheck, value: string) => void) | "flag">> = {
  COST(asked, value) {
    asked.cost = readWhole(value, "cost", 0, maxCost);
  },
  ID(asked, value) {
    asked.id = readWordText(value, "id", maxIdLength);
  },
  DOMAIN(asked, value) {
    asked.domain = readWordText(value, "domain", maxNameLength);
  },
  DEADLINE(asked, value) {
    asked.deadlineMs = readWhole(value, "deadline", 1, maxDeadlineMs);
  },
  POLICY(asked, value) {
    namePolicy(asked, value);
  },
  PREVIEW: "flag",
};

export const checkOptions: readonly string[] = Object.keys(options);

/**
 * Parses SLUICE.CHECK word by word: `name=value` is a dimension, the name of an option is that option, and any other
 * word is the id of a policy. Throws `invalid_request`, naming the wrong word.
 */
export function parseCheck(args: Arguments): CheckRequest {
  const dimensions: Record<string, string> = {};
  const asked: ParsedCheck = { dimensions };
  let given = 0;
  for (let i = 1; i < args.count; i++) {
    const equals = args.findEquals(i);
    if (equals >= 0) {
      given += 1;
      if (given > maxDimensions) throw invalidWord("dimensions", `must be at most ${maxDimensions}`);
      addDimension(dimensions, args.text(i, 0, equals), args.text(i, equals + 1));
      continue;
    }
    const word = args.text(i);
    const name = word.toUpperCase();
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    if (option === undefined) namePolicy(asked, word);
    else if (option === "flag") asked.preview = true;
    else {
      i += 1;
      if (i >= args.count) throw invalidWord(name, "must be followed by its value");
      option(asked, args.text(i));
    }
  }
  return asked;
}

function addDimension(dimensions: Record<string, string>, name: string, value: string): void {
  if (name === "") throw invalidWord("a dimension", "must have a name before its =");
  if (name.length > maxNameLength)
    throw invalidWord("a dimension", `must have a name of at most ${maxNameLength} characters`);
  // Choosing one of the two would be a guess.
  if (Object.hasOwn(dimensions, name)) throw invalidWord(`dimensions.${name}`, "must be given once");
  if (name === "__proto__") throw invalidWord("dimensions.__proto__", "is not a name that a dimension may have");
  if (value.length > maxDimensionLength)
    throw invalidWord(`dimensions.${name}`, `must have at most ${maxDimensionLength} characters`);
  dimensions[name] = value;
}

function namePolicy(asked: ParsedCheck, id: string): void {
  if (asked.policies === undefined) asked.policies = [];
  asked.policies.push(readWordText(id, "a policy's id", 256));
}

function readWordText(value: string, field: string, max: number): string {
  if (value.length >= 1 && value.length <= max) return value;
  throw invalidWord(field, `must have 1 to ${max} characters`);
}
