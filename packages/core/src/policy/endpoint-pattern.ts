import { describeValue } from "../shape/reading.ts";
import { refine, type Shape, text } from "../shape/shape.ts";

/**
 * `/v1/orders/{order}/**`: segments are literal, `{name}` or `*` for any one, and `**` at the end for whatever follows.
 * A trailing slash means nothing and is dropped.
 */
export const endpointPattern: Shape<string> = refine(
  text({ max: 1024, pattern: /^\//, form: "an endpoint pattern that begins with /, such as /v1/orders/**" }),
  (pattern, reading) => {
    const whole = pattern.length > 1 && pattern.endsWith("/") ? pattern.slice(0, -1) : pattern;
    const problem = whole === "/" ? undefined : findPatternProblem(whole.slice(1).split("/", maxSegments + 1));
    if (problem === undefined) return whole;
    return reading.problem(`${problem}, but is ${describeValue(pattern)}`);
  },
);

/** More than any path has. Each is a node of a tree on every server. */
const maxSegments = 64;

function findPatternProblem(segments: readonly string[]): string | undefined {
  if (segments.length > maxSegments) return `must have at most ${maxSegments} segments`;
  for (const [index, segment] of segments.entries()) {
    if (segment === "*" || /^\{[A-Za-z_][A-Za-z0-9_.-]*\}$/.test(segment)) continue;
    if (segment === "**") {
      if (index === segments.length - 1) continue;
      return "must have ** as its last segment only (use * for one segment)";
    }
    if (segment === "") return "must not have empty segments";
    if (/^(?:\.|%2e){1,2}$/i.test(segment)) return "must not have . or .. as a segment";
    if (/[*{}]/.test(segment)) return "must have *, ** or {name} as whole segments, not as parts of one";
    if (/[?#]/.test(segment)) return "must be a path only, without ? or #";
    if (/\s/.test(segment)) return "must not contain spaces";
    // Servers read these differently, so a pattern cannot rely on one reading.
    if (/%(?:2f|5c|3b)|[;\\]/i.test(segment))
      return "must not contain an encoded slash, nor a backslash or ; in any form";
    // Decoded like every path, it would match more than is written.
    if (/%(?:2a|7b|7d)/i.test(segment)) return "must not contain an encoded *, { or }";
  }
  return undefined;
}
