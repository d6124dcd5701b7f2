import { SluiceError } from "../errors.ts";

/** No server accepts a longer path; the rest is ignored. */
const maxConsidered = 8192;

/**
 * The one form in which endpoints are compared, so that no way of writing a path leads past a limit. Query, fragment,
 * scheme and authority are dropped, escapes decoded once, `\` and encoded slashes treated as slashes, `;parameters` and
 * control characters removed, empty and dot segments resolved, the trailing slash dropped, letters lowered. UTF-8 is
 * decoded, escaped or as bytes; anything else stays as it is. A text that is normal already comes back as the same
 * string.
 */
export function normalizeEndpoint(raw: string): string {
  if (isNormal(raw)) return raw;
  return normalForm(findTarget(raw));
}

function normalForm({ path, isBytes }: Target): string {
  const decoded = decodeEscapes(path, isBytes, true).replace(controls, "").toLowerCase();
  return joinSegments(resolveDots(splitPath(decoded, true, true).filter(isNamed)).filter(isNamed));
}

/** The most readings that a path can have, its normal form included: the sum of what `otherReadings` may add. */
export const maxReadings = 106;

/**
 * The most characters in all readings of a path together: sixteen times the longest path, or all 106 readings of one
 * with 600 characters.
 */
const maxReadingsLength = 65_536;

/**
 * Every other way in which some server would read the path. Servers disagree about encoded slashes, backslashes,
 * semicolons and control characters, about resolving dot segments and whether empty segments go before that, and about
 * `//`, after which some look for a host. A reading keeps the empty segments that its server keeps: `/files//x`,
 * `/files/x/`. Empty for nearly every path. Throws `invalid_request` for a long one with very many readings, which no
 * honest client sends: the work of examining them all is what an attacker is after.
 */
export function otherReadings(raw: string): readonly string[] {
  if (isNormal(raw)) return [];
  const target = findTarget(raw);
  const { path, isBytes } = target;
  const readings = new Readings();
  const read = (text: string | undefined, ways: readonly Way[]): void => {
    if (text !== undefined) addReadings(readings, text, isBytes, ways);
  };
  read(path, everyWay);
  // A parser that looks for a host leaves parameters in place.
  read(target.behindHost, withParameters);
  read(target.behindScheme, plainWays);
  read(target.withFragment, plainWays);
  // To some routers the first semicolon begins the query.
  if (path.includes(";")) read(path.slice(0, path.indexOf(";")), [asWritten]);
  // Caddy ignores trailing dots and spaces, as Windows does.
  const trimmed = trimEnd(path);
  if (trimmed !== path) read(trimmed, plainWays);
  // A proxy may resolve the literal dots, and leave the encoded ones to the server behind it.
  if (/%2e/i.test(path)) {
    const named = splitPath(path, false, false).filter(isNamed);
    if (named.some(isDots)) read(joinSegments(resolveDots(named)), plainWays);
  }
  return readings.except(normalForm(target));
}

/** Readings, each once. Finding one again is work as well. */
class Readings {
  readonly #found = new Set<string>();
  #length = 0;

  add(segments: readonly string[]): void {
    const reading = joinSegments(segments);
    this.#length += reading.length;
    if (this.#length > maxReadingsLength) throw tooAmbiguous();
    this.#found.add(reading);
  }

  except(normal: string): readonly string[] {
    this.#found.delete(normal);
    return [...this.#found];
  }
}

function tooAmbiguous(): SluiceError {
  const message = "can be read in too many ways for its length, by what servers make of its slashes, dots and escapes";
  return new SluiceError("invalid_request", `dimensions.endpoint ${message}`, [
    { path: ["dimensions", "endpoint"], message },
  ]);
}

/** A reading in the style of the normal form: `/files//x/` is `/files/x`. */
export function withoutEmptySegments(reading: string): string {
  return joinSegments(splitPath(reading, false, false).filter(isNamed));
}

/** How a server splits a path. */
interface Way {
  readonly decodesSeparators: boolean;
  readonly splitsAtBackslash: boolean;
  readonly dropsParameters: boolean;
}

const either: readonly boolean[] = [true, false];
const everyWay: readonly Way[] = either.flatMap((decodesSeparators) =>
  either.flatMap((splitsAtBackslash) =>
    either.map((dropsParameters) => ({ decodesSeparators, splitsAtBackslash, dropsParameters })),
  ),
);
const withParameters: readonly Way[] = everyWay.filter(({ dropsParameters }) => !dropsParameters);
/** Routers compare the path as sent, or decode all of it first. */
const plainWays: readonly Way[] = withParameters.filter(({ splitsAtBackslash }) => !splitsAtBackslash);
const asWritten: Way = plainWays.find(({ decodesSeparators }) => !decodesSeparators)!;

/** Adds at most five readings for each way. */
function addReadings(readings: Readings, path: string, isBytes: boolean, ways: readonly Way[]): void {
  const hasEncoded = /%(?:2f|5c|3b)/i.test(path);
  const decodedBy = new Map<boolean, string>();
  const splits = new Set<string>();
  for (const way of ways) {
    const decodesSeparators = hasEncoded && way.decodesSeparators;
    const decoded = decodedBy.get(decodesSeparators) ?? decodeEscapes(path, isBytes, decodesSeparators).toLowerCase();
    decodedBy.set(decodesSeparators, decoded);
    // A character that is not in the path cannot be read in two ways.
    const splitsAtBackslash = way.splitsAtBackslash && decoded.includes("\\");
    const dropsParameters = way.dropsParameters && decoded.includes(";");
    const split = `${decodesSeparators} ${splitsAtBackslash} ${dropsParameters}`;
    if (splits.has(split)) continue;
    splits.add(split);
    addResolutions(readings, splitPath(decoded, splitsAtBackslash, dropsParameters));
  }
}

/** Dot segments left alone, or resolved before or after empty segments are dropped, if they are dropped at all. */
function addResolutions(readings: Readings, segments: readonly string[]): void {
  const named = segments.filter(isNamed);
  readings.add(segments);
  readings.add(named);
  if (!named.some(isDots)) return;
  const kept = resolveDots(segments);
  readings.add(kept);
  readings.add(kept.filter(isNamed));
  readings.add(resolveDots(named).filter(isNamed));
}

const slash = 0x2f;
const dot = 0x2e;

/**
 * Codes that mean themselves in a path: printable ASCII except capitals and `% ? # ; \\`. Other letters may have a
 * lower case.
 */
const plain: Uint8Array = Uint8Array.from({ length: 128 }, (_, code) =>
  code > 0x20 && code < 0x7f && !/[A-Z%?#;\\]/.test(String.fromCharCode(code)) ? 1 : 0,
);

/** One look at each character and no allocation: nearly every request is in normal form, with a single reading. */
function isNormal(raw: string): boolean {
  const { length } = raw;
  if (length > maxConsidered || raw.charCodeAt(0) !== slash) return false;
  const last = raw.charCodeAt(length - 1);
  if (last === slash || last === dot) return length === 1;
  let previous = 0;
  for (let at = 0; at < length; at++) {
    const code = raw.charCodeAt(at);
    if (plain[code] !== 1) return false;
    if (previous === slash && (code === slash || (code === dot && isDotSegment(raw, at)))) return false;
    previous = code;
  }
  return true;
}

/** Whether the segment that starts with the dot at `at` is `.` or `..`. */
function isDotSegment(raw: string, at: number): boolean {
  const end = raw.charCodeAt(at + 1) === dot ? at + 2 : at + 1;
  return end === raw.length || raw.charCodeAt(end) === slash;
}

/** A request target, in the ways in which servers find the path in it. */
interface Target {
  readonly path: string;
  /** After `//host`, or after the host of an address that has more or fewer than two slashes before it. */
  readonly behindHost: string | undefined;
  /** After `x:` if a single slash follows. */
  readonly behindScheme: string | undefined;
  /** With `#` as an ordinary character. */
  readonly withFragment: string | undefined;
  /** Whether each character stands for a byte, as in Node's request URLs. */
  readonly isBytes: boolean;
}

function findTarget(raw: string): Target {
  const considered = (raw.length > maxConsidered ? raw.slice(0, maxConsidered) : raw).replace(asciiControls, "");
  const isBytes = /[\x80-\xff]/.test(considered) && !/[\u0100-\uffff]/.test(considered);
  const withFragment = /^[^?]*/.exec(considered)![0];
  const target = /^[^#]*/.exec(withFragment)![0];
  const path = target.replace(origin, "");
  const scheme = /^[a-z][a-z0-9+.-]*:(?=[/\\])/i.exec(target)?.[0] ?? "";
  const behindHost = target.slice(scheme.length).replace(scheme === "" ? /^[/\\]{2,}[^/\\]*/ : /^[/\\]+[^/\\]*/, "");
  return {
    path,
    behindHost: behindHost === target || behindHost === path ? undefined : behindHost,
    behindScheme: scheme !== "" && path === target ? target.slice(scheme.length) : undefined,
    withFragment: withFragment === target ? undefined : withFragment.replace(origin, ""),
    isBytes,
  };
}

const origin = /^[a-z][a-z0-9+.-]*:\/\/[^/\\]*/i;

const controls = /\p{Cc}+/gu;
/** No server passes these on; those beyond ASCII may be bytes of UTF-8. */
const asciiControls = /[^\P{Cc}\x80-\x9f]+/gu;

/** Step by step: a pattern that searches for the end from everywhere takes quadratic time. */
function trimEnd(path: string): string {
  let end = path.length;
  for (;;) {
    const last = /(?:[. ]|%2e|%20)$/i.exec(path.slice(Math.max(end - 3, 0), end))?.[0];
    if (last === undefined) return path.slice(0, end);
    end -= last.length;
  }
}

function splitPath(path: string, splitsAtBackslash: boolean, dropsParameters: boolean): readonly string[] {
  const segments = path.split(splitsAtBackslash ? /[/\\]/ : "/");
  if (segments[0] === "" && segments.length > 1) segments.shift();
  return dropsParameters ? segments.map((segment) => segment.replace(/;.*/s, "")) : segments;
}

/** Without `.` and `..`, and what `..` removes, even if that is an empty segment. */
function resolveDots(segments: readonly string[]): readonly string[] {
  const resolved: string[] = [];
  for (const segment of segments) {
    if (segment === "..") resolved.pop();
    else if (segment !== ".") resolved.push(segment);
  }
  // `/a/b/..` is the folder `/a/`.
  if (isDots(segments.at(-1) ?? "")) resolved.push("");
  return resolved;
}

function isNamed(segment: string): boolean {
  return segment !== "";
}

function isDots(segment: string): boolean {
  return segment === "." || segment === "..";
}

function joinSegments(segments: readonly string[]): string {
  return `/${segments.join("/")}`;
}

/**
 * Decodes `%XX` once. Bytes that are not UTF-8, and encoded separators that are ordinary characters, stay as written.
 */
function decodeEscapes(path: string, isBytes: boolean, decodesSeparators: boolean): string {
  if (!isBytes && !path.includes("%")) return path;
  const beyondAscii = isBytes ? /(?:%[89a-f][0-9a-f]|[\x80-\xff])+/gi : /(?:%[89a-f][0-9a-f])+/gi;
  return path
    .replace(beyondAscii, decodeUtf8)
    .replace(decodesSeparators ? /%[0-7][0-9a-f]/gi : /%(?!2f|5c|3b)[0-7][0-9a-f]/gi, (written) =>
      String.fromCharCode(Number.parseInt(written.slice(1), 16)),
    );
}

/** Decodes bytes beyond ASCII, each written as `%XX` or as the character with that code. */
function decodeUtf8(written: string): string {
  const units = written.match(/%..|[^%]/g)!;
  const bytes = units.map((unit) => (unit.length === 3 ? Number.parseInt(unit.slice(1), 16) : unit.charCodeAt(0)));
  let decoded = "";
  for (let at = 0; at < bytes.length; ) {
    const codePoint = decodeCodePoint(bytes, at);
    decoded += codePoint === -1 ? units[at]! : String.fromCodePoint(codePoint);
    at += codePoint === -1 ? 1 : utf8Length(codePoint);
  }
  return decoded;
}

/** The code point whose UTF-8 begins at `at`, or -1. Overlong forms and surrogates are not UTF-8. */
function decodeCodePoint(bytes: readonly number[], at: number): number {
  const first = bytes[at]!;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return -1;
  let codePoint = first & (0x7f >> length);
  for (let index = 1; index < length; index++) {
    const next = bytes[at + index] ?? 0;
    if ((next & 0xc0) !== 0x80) return -1;
    codePoint = (codePoint << 6) | (next & 0x3f);
  }
  const isSurrogate = codePoint >= 0xd800 && codePoint <= 0xdfff;
  return utf8Length(codePoint) === length && codePoint <= 0x10ffff && !isSurrogate ? codePoint : -1;
}

function utf8Length(codePoint: number): number {
  return codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4;
}
