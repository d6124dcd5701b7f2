/** Names of fields that hold a secret, at any depth, whoever logs them. */
const secretNames = [
  "(?:proxy-)?authorization",
  "(?:set-)?cookie",
  "[\\w-]*passw(?:or)?d",
  "[\\w-]*secret",
  "(?:[\\w-]+[_-])?token",
  "(?:x[_-])?api[_-]?key",
  "private[_-]?key",
].join("|");

const text = '"(?:[^"\\\\]|\\\\.)*"';
const secretField = new RegExp(`("(?:${secretNames})"):(?:${text}|\\[[^\\]]*\\]|[\\w.+-]+)`, "gi");

/** What gives a secret away wherever it stands: a password in an address, a bearer token, one of our tokens, a private key. */
const secretTexts: readonly (readonly [RegExp, string])[] = [
  // Up to the last @ before the path; where there is none, up to the first.
  [/([a-z][a-z0-9+.-]*:\/\/[^\s:/@"\\]*):(?:[^\s/?#"\\]+|[^\s@"\\]+)@/gi, "$1:[redacted]@"],
  [/\b(bearer|basic)[ :]+[\w.~+/=-]{4,}/gi, "$1 [redacted]"],
  [/\bsluice_[\w-]{43}(?![\w-])/g, "[redacted]"],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|(?="|$))/gs, "[redacted]"],
];

/** A log line in JSON without the secrets that can be told from what stands beside them. It stays JSON. */
export function redactSecrets(line: string): string {
  let told = line.replace(secretField, '$1:"[redacted]"');
  for (const [pattern, instead] of secretTexts) told = told.replace(pattern, instead);
  return told;
}
