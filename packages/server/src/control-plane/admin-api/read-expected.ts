import { type Problem, SluiceError } from "sluice";
import type { RequestHeaders } from "../../data-plane/transports/http/exchange.ts";

/** Whether versions are read; with `or_any` also `If-Match: *`, which accepts any version. */
export type Expects = boolean | "or_any";

/**
 * The version that a caller saw: from `If-Match: "3"`, from `If-None-Match: *` (none yet) or from the body. Undefined
 * if it is not given. Throws `invalid_request` if it cannot be parsed, if two places disagree, or if the route does not
 * read it.
 */
export function readExpected(
  headers: RequestHeaders,
  inBody: number | undefined,
  expects: Expects,
): number | "any" | undefined {
  const problems: Problem[] = [];
  const stated = [
    ["If-Match", readIfMatch(headers, expects === "or_any", problems)],
    ["If-None-Match", readIfNoneMatch(headers, problems)],
    ["expected_version", inBody],
  ] as const;
  const given = stated.filter(([, version]) => version !== undefined);
  const [first, ...others] = given;
  for (const [name, version] of others) {
    if (version !== first![1])
      problems.push({ path: [name], message: `names another version than ${first![0]}; send one of the two` });
  }
  if (expects === false && first !== undefined)
    problems.push({ path: [first[0]], message: "is not used here; leave it out" });
  if (problems.length > 0) throw new SluiceError("invalid_request", `${problems[0]!.path[0]} cannot be used`, problems);
  return first?.[1];
}

function readIfNoneMatch(headers: RequestHeaders, problems: Problem[]): number | undefined {
  const text = joinHeader(headers["if-none-match"]);
  if (text === undefined) return undefined;
  if (text === "*") return 0;
  problems.push({ path: ["If-None-Match"], message: "must be *, which means that there is none yet" });
  return undefined;
}

function readIfMatch(headers: RequestHeaders, orAny: boolean, problems: Problem[]): number | "any" | undefined {
  const text = joinHeader(headers["if-match"]);
  if (text === undefined) return undefined;
  if (orAny && text === "*") return "any";
  // A proxy that compresses answers turns an ETag into a weak one, which still is a version.
  const [, digits] = /^(?:W\/)?"(\d{1,15})"$/.exec(text) ?? [];
  if (digits !== undefined) return Number(digits);
  const message = 'must be the ETag of what you saw, one version in quotes: "3"';
  problems.push({ path: ["If-Match"], message: orAny ? `${message}; or * for any version` : message });
  return undefined;
}

function joinHeader(value: RequestHeaders[string]): string | undefined {
  return value === undefined ? undefined : String(value).trim();
}
