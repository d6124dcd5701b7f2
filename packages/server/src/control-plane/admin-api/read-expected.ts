import { type Problem, SluiceError } from "sluice";
import type { RequestHeaders } from "../../data-plane/transports/http/exchange.ts";

/** Whether versions are looked at, and with `or_any` also `If-Match: *`: whatever there is. */
export type Expects = boolean | "or_any";

/**
 * The version that a caller saw: of `If-Match: "3"`, of `If-None-Match: *` (there is none yet) or of the body. Undefined where it
 * says nothing. Throws `invalid_request` where it cannot be read, says two things, or is said where nothing looks at it.
 */
export function readExpected(
  headers: RequestHeaders,
  inBody: number | undefined,
  expects: Expects,
): number | "any" | undefined {
  const problems: Problem[] = [];
  const said = [
    ["If-Match", readIfMatch(headers, expects === "or_any", problems)],
    ["If-None-Match", readIfNoneMatch(headers, problems)],
    ["expected_version", inBody],
  ] as const;
  const given = said.filter(([, version]) => version !== undefined);
  const [first, ...others] = given;
  for (const [name, version] of others) {
    if (version !== first![1])
      problems.push({ path: [name], message: `says another version than ${first![0]}; send one of the two` });
  }
  if (expects === false && first !== undefined)
    problems.push({ path: [first[0]], message: "is not looked at here; leave it out" });
  if (problems.length > 0)
    throw new SluiceError("invalid_request", `what ${problems[0]!.path[0]} says cannot be used`, problems);
  return first?.[1];
}

function readIfNoneMatch(headers: RequestHeaders, problems: Problem[]): number | undefined {
  const text = textOf(headers["if-none-match"]);
  if (text === undefined) return undefined;
  if (text === "*") return 0;
  problems.push({ path: ["If-None-Match"], message: "must be *, which says that there is none yet" });
  return undefined;
}

function readIfMatch(headers: RequestHeaders, orAny: boolean, problems: Problem[]): number | "any" | undefined {
  const text = textOf(headers["if-match"]);
  if (text === undefined) return undefined;
  if (orAny && text === "*") return "any";
  // A proxy that compresses answers makes an ETag a weak one. It is a version all the same.
  const [, digits] = /^(?:W\/)?"(\d{1,15})"$/.exec(text) ?? [];
  if (digits !== undefined) return Number(digits);
  const message = 'must be the ETag of what you saw, one version in quotes: "3"';
  problems.push({ path: ["If-Match"], message: orAny ? `${message}; or *, for whatever there is` : message });
  return undefined;
}

function textOf(value: RequestHeaders[string]): string | undefined {
  return value === undefined ? undefined : String(value).trim();
}
