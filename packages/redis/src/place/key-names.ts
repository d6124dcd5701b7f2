import { createHash } from "node:crypto";

/**
 * Names of keys: `<prefix><tag>:<code>:<subject>`. The code stands for the counter's identity in ten letters, because
 * identities are long and every counter would carry one. Two of a million identities collide with a probability below
 * 10⁻⁶.
 *
 *     s:Xb0q_2RtLw:acme|u1      a counter; the same form is used for the block and the ledger of a limit
 *     s:Xb0q_2RtLw!acme|u1      its mark, while something of it may be given back
 *     s:Xb0q_2RtLw=acme         the distinct values that it counts
 *     s:Xb0q_2RtLw?acme|u1      where its holds are noted, if it is counted in time
 *     s:i:…  s:r:…              a request id, a receipt
 *     s:h:…  s:h                a hold, and the index of all holds of the lane
 */
export interface KeyNames {
  counter(code: string, subject: string): string;
  mark(code: string, subject: string): string;
  /** Where the distinct values of a counter are. */
  values(code: string, subject: string): string;
  requestId(id: string, scope?: string): string;
  receipt(name: string): string;
  hold(name: string): string;
  holdIndex(): string;
  /** Where the holds of a counter are noted. */
  held(code: string, subject: string): string;
}

export function createKeyNames(prefix: string): KeyNames {
  // What the names of consecutive counters begin with: almost always the same.
  let lastCode = "";
  let begin = "";
  return {
    counter(code, subject) {
      if (code !== lastCode) {
        lastCode = code;
        begin = `${prefix}:${code}:`;
      }
      return begin + safe(subject);
    },
    mark: (code, subject) => `${prefix}:${code}!${safe(subject)}`,
    values: (code, subject) => `${prefix}:${code}=${safe(subject)}`,
    requestId: (id, scope = "") => `${prefix}:i${scope}:${safe(id)}`,
    receipt: (name) => `${prefix}:r:${name}`,
    hold: (name) => `${prefix}:h:${name}`,
    holdIndex: () => `${prefix}:h`,
    held: (code, subject) => `${prefix}:${code}?${safe(subject)}`,
  };
}

const longestPlain = 64;

/**
 * A text as part of a key: itself if it is short and plain, else a hash of it, marked by a `#` that no plain one begins
 * with. The hash covers UTF-16 units, so that texts that are not valid Unicode stay different too.
 */
function safe(text: string): string {
  if (isPlain(text)) return text;
  return `#${createHash("sha256").update(text, "utf16le").digest("base64url").slice(0, 27)}`;
}

/** Printable ASCII. A loop, because every check runs it, and a regular expression takes four times as long. */
function isPlain(text: string): boolean {
  const { length } = text;
  if (length > longestPlain || text.charCodeAt(0) === 0x23) return false;
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x20 || unit > 0x7e) return false;
  }
  return true;
}

const knownCodes = new Map<string, string>();
const mostKnownCodes = 100_000;

/** Ten letters for an identity: 60 bits of its SHA-256. */
export function identityCode(identity: string): string {
  let code = knownCodes.get(identity);
  if (code === undefined) {
    code = createHash("sha256").update(identity, "utf16le").digest("base64url").slice(0, 10);
    if (knownCodes.size >= mostKnownCodes) knownCodes.clear();
    knownCodes.set(identity, code);
  }
  return code;
}
