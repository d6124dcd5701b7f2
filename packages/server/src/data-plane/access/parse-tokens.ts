import { choice, listOf, objectOf, type Problem, readShape, refine, type Shape, SluiceError, text } from "sluice";
import { isNode, LineCounter, parseDocument } from "yaml";
import { parseMoment } from "./parse-moment.ts";
import { type Role, roles } from "./roles.ts";

/** A token as the file knows it: by its digest alone. */
export interface TokenEntry {
  readonly name: string;
  readonly role: Role;
  /** The team whose policies an editor may change. */
  readonly team?: string | undefined;
  /** SHA-256 of the token, in lower-case hexadecimal digits. */
  readonly sha256: string;
  /** Refused from then on, in milliseconds since 1970. */
  readonly expiresMs: number | undefined;
}

const maxTokens = 10_000;

/** Reads a file of tokens, in YAML or JSON. Throws `invalid_request` with every problem and its place. */
export function parseTokens(content: string, file: string): readonly TokenEntry[] {
  const lines = new LineCounter();
  const document = parseDocument(content, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const placeAt = (offset: number): NonNullable<Problem["place"]> => {
    const { line, col } = lines.linePos(offset);
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const syntax = document.errors.map(({ message, pos }): Problem => ({ path: [], message, place: placeAt(pos[0]) }));
  if (syntax.length > 0) throw unusable(file, syntax);
  const read = readShape(tokensShape, readContents(document, file));
  if (read.ok) return read.value.tokens;

  /** Where the deepest part of a path stands that there is. */
  function offsetOf(path: Problem["path"]): number {
    for (let length = path.length; length > 0; length -= 1) {
      const node = document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return node.range[0];
    }
    return 0;
  }
  throw unusable(
    file,
    read.problems.map((problem) => ({ ...problem, place: placeAt(offsetOf(problem.path)) })),
  );
}

function readContents(document: ReturnType<typeof parseDocument>, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    throw unusable(file, [{ path: [], message: "uses anchors too often", place: { file, line: 1, column: 1 } }]);
  }
}

function unusable(file: string, problems: readonly Problem[]): SluiceError {
  const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
  return new SluiceError("invalid_request", `${file} cannot be used: it has ${count}`, problems);
}

/** Never says what it was given, which may be a token. */
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
      "must not be here: who can read this file could use it. Write sha256, which sluice token make prints with a new token",
    ),
};

const moment = refine(
  text({ max: 40 }),
  (value, reading) =>
    parseMoment(value) ??
    reading.problem(`must be a date such as 2027-01-31, or 2027-01-31T12:00:00Z, but is ${JSON.stringify(value)}`),
);

/** What a token may be called: it stands in logs. */
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
