import { type Problem, SluiceError } from "sluice";
import type { RequestHeaders } from "../http/exchange.ts";

/**
 * The version that a caller saw: of `If-Match: "3"`, of `If-None-Match: *` (there is none yet) or of the body. Undefined where it
 * says nothing. Throws `invalid_request` where it cannot be read, says two things, or is said where nothing looks at it.
 */
export function readExpected(
  headers: RequestHeaders,
  inBody: number | undefined,
  expects: boolean,
): number | undefined {
  const problems: Problem[] = [];
  const said = [
    ["If-Match", readHeader(headers, "If-Match", problems)],
    ["If-None-Match", readHeader(headers, "If-None-Match", problems)],
    ["expected_version", inBody],
  ] as const;
  const given = said.filter(([, version]) => version !== undefined);
  const [first, ...others] = given;
  for (const [name, version] of others) {
    if (version !== first![1])
      problems.push({ path: [name], message: `says another version than ${first![0]}; send one of the two` });
  }
  if (!expects && first !== undefined)
    problems.push({ path: [first[0]], message: "is not looked at here; leave it out" });
  if (problems.length > 0)
    throw new SluiceError("invalid_request", `what ${problems[0]!.path[0]} says cannot be used`, problems);
  return first?.[1];
}

function readHeader(
  headers: RequestHeaders,
  name: "If-Match" | "If-None-Match",
  problems: Problem[],
): number | undefined {
  const value = headers[name.toLowerCase()];
  if (value === undefined) return undefined;
  const text = String(value).trim();
  if (name === "If-None-Match") {
    if (text === "*") return 0;
    problems.push({ path: [name], message: "must be *, which says that there is none yet" });
    return undefined;
  }
  // A proxy that compresses answers makes an ETag a weak one. It is a version all the same.
  const [, digits] = /^(?:W\/)?"(\d{1,15})"$/.exec(text) ?? [];
  if (digits !== undefined) return Number(digits);
  const message = 'must be the ETag of what you saw, one version in quotes: "3"';
  problems.push({ path: [name], message });
  return undefined;
}
