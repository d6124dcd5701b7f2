/** No server takes a longer path; what comes after is not looked at. */
const maxConsidered = 8192;

/**
 * The one form in which endpoints are compared, so that no way of writing a path leads past a limit. Query, fragment,
 * scheme and authority are dropped, escapes decoded once, `\` and encoded slashes taken for slashes, `;parameters` and
 * control characters removed, empty and dot segments resolved, the trailing slash dropped, letters lowered. Escapes that
 * are not UTF-8 stay as they are. A text that is normal already comes back as the same string.
 */
export function normalizeEndpoint(raw: string): string {
  if (isNormal(raw)) return raw;
  return resolvePath(decodeEscapes(findPath(raw), true), true, true);
}

/**
 * Every other way in which some server would read the path. To one an encoded slash is an ordinary character, to another
 * a backslash is, or a `;`: `/files/a%2Fb` may be one name under `/files`. Empty for nearly every path.
 */
export function otherReadings(raw: string): readonly string[] {
  if (isNormal(raw)) return [];
  const path = findPath(raw);
  const either = [true, false];
  const only = [true];
  const readings = new Set<string>();
  for (const decodesSeparators of /%(?:2f|5c|3b)/i.test(path) ? either : only) {
    const decoded = decodeEscapes(path, decodesSeparators);
    for (const splitsAtBackslash of decoded.includes("\\") ? either : only) {
      for (const dropsParameters of decoded.includes(";") ? either : only) {
        readings.add(resolvePath(decoded, splitsAtBackslash, dropsParameters));
      }
    }
  }
  readings.delete(normalizeEndpoint(raw));
  return [...readings];
}

const slash = 0x2f;
const backslash = 0x5c;
const semicolon = 0x3b;
const dot = 0x2e;
const percent = 0x25;

/** Which codes mean themselves in a path: printable ASCII but capitals and `% ? # ; \\`. Other letters may have a lower case. */
const plain: Uint8Array = Uint8Array.from({ length: 128 }, (_, code) =>
  code > 0x20 && code < 0x7f && !/[A-Z%?#;\\]/.test(String.fromCharCode(code)) ? 1 : 0,
);

/** One look at each character and no allocation: nearly every request is written in normal form. */
function isNormal(raw: string): boolean {
  const { length } = raw;
  if (length > maxConsidered || raw.charCodeAt(0) !== slash || raw.charCodeAt(length - 1) === slash) return raw === "/";
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

/** The raw path: without control characters, query, fragment, and `http://host` where the request names it. */
function findPath(raw: string): string {
  const considered = removeControls(raw.length > maxConsidered ? raw.slice(0, maxConsidered) : raw);
  const path = /^[^?#]*/.exec(considered)![0];
  const origin = /^[a-z][a-z0-9+.-]*:\/\/[^/\\]*/i.exec(path);
  return origin === null ? path : path.slice(origin[0].length);
}

function removeControls(text: string): string {
  return text.replace(/\p{Cc}+/gu, "");
}

function resolvePath(path: string, splitsAtBackslash: boolean, dropsParameters: boolean): string {
  const segments: string[] = [];
  for (const written of path.split(splitsAtBackslash ? /[/\\]/ : "/")) {
    const parametersAt = dropsParameters ? written.indexOf(";") : -1;
    const segment = parametersAt === -1 ? written : written.slice(0, parametersAt);
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return `/${segments.join("/")}`.toLowerCase();
}

/** Decodes `%XX` once. What is not UTF-8, and encoded separators that are ordinary characters, stay as written. */
function decodeEscapes(path: string, decodesSeparators: boolean): string {
  let at = path.indexOf("%");
  if (at === -1) return path;
  let decoded = "";
  let copiedTo = 0;
  while (at !== -1) {
    const codePoint = decodeCodePoint(path, at);
    const isSeparator = codePoint === slash || codePoint === backslash || codePoint === semicolon;
    const end = at + 3 * utf8Length(codePoint);
    if (codePoint !== -1 && (decodesSeparators || !isSeparator)) {
      decoded += path.slice(copiedTo, at) + String.fromCodePoint(codePoint);
      copiedTo = end;
    }
    at = path.indexOf("%", codePoint === -1 ? at + 1 : end);
  }
  return removeControls(decoded + path.slice(copiedTo));
}

/** The code point whose UTF-8 bytes are written as escapes from `at` on, or -1. Overlong forms and surrogates are not UTF-8. */
function decodeCodePoint(path: string, at: number): number {
  const first = decodeByte(path, at);
  if (first < 0x80) return first;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return -1;
  let codePoint = first & (0x7f >> length);
  for (let index = 1; index < length; index++) {
    const next = decodeByte(path, at + 3 * index);
    if ((next & 0xc0) !== 0x80) return -1;
    codePoint = (codePoint << 6) | (next & 0x3f);
  }
  const isSurrogate = codePoint >= 0xd800 && codePoint <= 0xdfff;
  return utf8Length(codePoint) === length && codePoint <= 0x10ffff && !isSurrogate ? codePoint : -1;
}

function utf8Length(codePoint: number): number {
  return codePoint < 0x80 ? 1 : codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4;
}

/** The byte that `%XX` at `at` stands for, or -1. */
function decodeByte(path: string, at: number): number {
  if (path.charCodeAt(at) !== percent) return -1;
  const high = hexDigit(path.charCodeAt(at + 1));
  const low = hexDigit(path.charCodeAt(at + 2));
  return high === -1 || low === -1 ? -1 : (high << 4) | low;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
