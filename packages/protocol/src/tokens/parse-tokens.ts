import { type Problem, SluiceError } from "sluice";
import { parseMoment } from "sluice/internal";
import { parseYamlDocument } from "sluice/policy-text";
import { choice, listOf, objectOf, readShape, refine, type Shape, text } from "sluice/shape";
import { type Role, roles } from "../admin/token.ts";

/** A token as the file knows it: by its digest alone. */
export interface TokenEntry {
  readonly name: string;
  readonly role: Role;
  /** The team whose policies an editor may change. */
  readonly team?: string | undefined;
  /** SHA-256 of the token, in lower-case hexadecimal digits. */
  readonly sha256: string;
  /** When it expires, in milliseconds since 1970. */
  readonly expiresMs: number | undefined;
}

const maxTokens = 10_000;

/** Parses a file of tokens, in YAML or JSON. Throws `invalid_request` with every problem and its place. */
export function parseTokens(content: string, file: string): readonly TokenEntry[] {
  const { contents, problems, withPlace } = parseYamlDocument(content, file);
  if (problems.length > 0) throw unusable(file, problems);
  const read = readShape(tokensShape, contents);
  if (read.ok) return read.value.tokens;
  throw unusable(
    file,
    read.problems.map((problem) => withPlace(problem, false)),
  );
}

function unusable(file: string, problems: readonly Problem[]): SluiceError {
  const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
  return new SluiceError("invalid_request", `${file} cannot be used: it has ${count}`, problems);
}

/** Never repeats its input, which may be a token. */
const digest: Shape<string> = {
  name: "64 hexadecimal digits",
  schema: { type: "string", pattern: "^[0-9a-fA-F]{64}$" },
  read: (value, reading) =>
    typeof value === "string" && /^[0-9a-f]{64}$/i.test(value)
      ? value.toLowerCase()
      : reading.problem("must be the SHA-256 of a token, in 64 hexadecimal digits; sluice token make prints it"),
};

const tokenItself: Shape<never> = {
  name: "nothing",
  schema: { not: {} },
  read: (_value, reading) =>
    reading.problem(
      "must not be here: any reader of this file could use it. Write sha256, which sluice token make prints with a new token",
    ),
};

const moment = refine(
  text({ max: 40 }),
  (value, reading) =>
    parseMoment(value) ??
    reading.problem(`must be a date such as 2027-01-31, or 2027-01-31T12:00:00Z, but is ${JSON.stringify(value)}`),
);

/** The form of a token's name, which appears in logs. */
export const tokenName: RegExp = /^[\w.@:/-]{1,64}$/;

const tokenShape = objectOf(
  {
    name: text({ max: 64, pattern: tokenName, form: "letters, digits or . _ @ : / -" }),
    role: choice(roles),
    sha256: digest,
  },
  {
    expires: moment,
    team: text({ max: 64, pattern: tokenName, form: "letters, digits or . _ @ : / -" }),
    token: tokenItself,
  },
);

const tokensShape = refine(objectOf({ tokens: listOf(tokenShape, { max: maxTokens }) }), ({ tokens }, reading) => {
  const names = new Set<string>();
  const digests = new Set<string>();
  for (const [index, { name, sha256, role, team }] of tokens.entries()) {
    if (role === "editor" && team === undefined)
      reading.problem("is missing: an editor changes the policies of one team", "tokens", index, "team");
    if (role !== "editor" && team !== undefined)
      reading.problem("is for editors alone; every other role is for all policies", "tokens", index, "team");
    if (names.has(name)) reading.problem(`is ${name}, as another token; give each its own`, "tokens", index, "name");
    if (digests.has(sha256))
      reading.problem("is that of another token; each caller needs its own", "tokens", index, "sha256");
    names.add(name);
    digests.add(sha256);
  }
  return {
    tokens: tokens.map(
      ({ name, role, team, sha256, expires }): TokenEntry => ({ name, role, team, sha256, expiresMs: expires }),
    ),
  };
});
